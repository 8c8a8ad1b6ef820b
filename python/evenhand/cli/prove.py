# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan prove`: how good the draws of a plan are, by statistics anybody can repeat."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, parse_count
from evenhand.cli.common import EngineOption, JsonOption, err, out, with_options, write_json
from evenhand.cli.plan_argument import NameArgument
from evenhand.plan import AddressPlan, describe_plan
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.report.proof import (
    GENERATOR_NAMES,
    ProofJudgement,
    contrast_lines,
    contrast_table,
    fields_table,
    judge_proof,
    pairs_table,
    proof_lines,
)
from evenhand.spec.common_options import DEFAULT_SEED, SeedOption
from evenhand.spec.plan import CountOptions, DirectionOption, read_directions
from evenhand.trial import MAX_PROOF_FRAMES, EngineSession, Generator, StreamProof, find_engine

EXAMPLE = "Example: evenhand plan prove gateway-v4 --frames 1e8 --seed 7"
SUSPICIOUS = 1
"""Exit code: the proof was made, and its answer is no, so that a script need not read the text."""
DRAWS_PER_S = 2e7
"""Numbers that one CPU draws and counts per second; for the expected time only."""
_LARGEST_FIRST = 2**48 - 1 - MAX_PROOF_FRAMES * 128
"""The tag's sequence number has 48 bits (contract/request.schema.json)."""

Contrast = tuple[Generator, ...]


@with_options
def prove(
    name: NameArgument,
    *,
    frames: Annotated[
        str,
        typer.Option(
            "--frames", metavar="COUNT", help="Number of frames to draw from each stream: 1e8, 100M, 1G."
        ),
    ] = "1e8",
    seed: SeedOption = DEFAULT_SEED,
    counts: CountOptions,
    direction: DirectionOption = "both",
    streams: Annotated[
        int,
        typer.Option(
            "--streams", min=1, max=128, help="Number of streams of a direction; each is tested separately."
        ),
    ] = 1,
    first: Annotated[
        int, typer.Option("--first", min=0, max=_LARGEST_FIRST, help="Sequence number of the first frame.")
    ] = 0,
    contrast: Annotated[
        bool,
        typer.Option(
            "--contrast/--no-contrast",
            help="Also show the results of a 15-bit generator and of a biased modulo.",
        ),
    ] = True,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Draw the frames of a plan without sending them, and judge whether the draws are uniform and
    independent. The exit code is 1 if they are suspicious."""
    directions = read_directions(direction)
    count = parse_count(frames, where="--frames")
    if count > MAX_PROOF_FRAMES:
        raise RequestError(
            f"{format_count(count)} frames: at most {format_count(MAX_PROOF_FRAMES)} frames of a"
            " stream can be tested at once",
            code="cli.too-many-frames",
            where="--frames",
            next_step="Test the following frames with --first, or use another --seed.",
        )
    plan = counts.read(name)
    faulty: Contrast = (
        tuple(generator for generator in GENERATOR_NAMES if generator != "philox") if contrast else ()
    )
    runs: list[dict[str, Any]] = [
        {"direction": d, "stream": s, "generator": "philox"} for d in directions for s in range(streams)
    ]
    runs += [{"direction": directions[0], "stream": 0, "generator": generator} for generator in faulty]
    expected = ExpectedTime(
        seconds=len(runs) * count / DRAWS_PER_S,
        parts=f"{len(runs)} streams of {format_count(count)} frames",
        assumes="",
    )
    err().print(expected.line, markup=False, soft_wrap=True)
    with EngineSession([find_engine(engine)]) as session, _progress() as progress:
        proofs = [
            _prove(
                session,
                plan,
                progress,
                f"{n} of {len(runs)}",
                seed=seed,
                frames=count,
                first=first,
                streams=streams,
                **run,
            )
            for n, run in enumerate(runs, start=1)
        ]
    own, others = proofs[: len(proofs) - len(faulty)], proofs[len(proofs) - len(faulty) :]
    judgement = judge_proof(own)
    if json_output:
        write_json(
            {
                "command": "plan prove",
                "plan": plan.title,
                "address_plan": describe_plan(plan),
                "seed": seed,
                "frames": count,
                **_judgement_document(judgement),
                "streams": [stream.raw for stream in own],
                "contrast": [
                    {**_judgement_document(judge_proof([stream])), **stream.raw} for stream in others
                ],
            }
        )
    else:
        _show(plan, seed, judgement, own, others)
    if judgement.suspicious:
        raise typer.Exit(SUSPICIOUS)


def _prove(
    session: EngineSession, plan: AddressPlan, progress: Progress, place: str, *, frames: int, **request: Any
) -> StreamProof:
    """One stream: a bar while it is drawn, on a terminal, and everywhere a line when it has been."""
    what = (
        f"{place}: {GENERATOR_NAMES[request['generator']]}, {request['direction']}, stream"
        f" {request['stream']}"
    )
    task = progress.add_task(what, total=frames)

    def on_event(event: dict[str, Any]) -> None:
        progress.update(task, completed=event["drawn_frames"])

    reply = session.request("prove", on_event=on_event, plan=plan.to_request(), frames=frames, **request)
    progress.remove_task(task)
    progress.console.print(f"{what}: {format_count(frames)} frames drawn", markup=False)
    return StreamProof.from_contract(reply)


def _progress() -> Progress:
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _show(
    plan: AddressPlan, seed: int, judgement: ProofJudgement, own: list[StreamProof], others: list[StreamProof]
) -> None:
    console = out()
    console.print(
        f"Plan {plan.title} ({plan.figure}), seed {seed}: {format_count(plan.pairs)} address pairs per"
        " direction."
    )
    for stream in own:
        console.print()
        console.print(fields_table(stream))
        pairs = pairs_table(stream)
        if pairs is not None:
            console.print()
            console.print(pairs)
    if others:
        console.print()
        console.print(contrast_table(others))
    console.print()
    for line in [*contrast_lines(others), *proof_lines(judgement)]:
        console.print(line)


def _judgement_document(judgement: ProofJudgement) -> dict[str, Any]:
    return {
        "verdict": judgement.verdict,
        "figures": judgement.figures,
        "bound": judgement.bound,
        "unproven": judgement.unproven,
        "suspicious": [{"where": f.where, "what": f.what, "p": f.extreme_p} for f in judgement.suspicious],
    }
