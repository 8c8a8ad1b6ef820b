# SPDX-License-Identifier: Apache-2.0
"""`evenhand run`: a whole campaign from its file, into one file; begun, or gone on with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import typer

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.units import format_count
from evenhand.cli.common import command_line, err, out, write_json
from evenhand.cli.live_page import LivePage
from evenhand.cli.progress.campaign import CampaignDisplay
from evenhand.cli.progress.contained import contained
from evenhand.cli.progress.json_lines import JsonCampaignProgress
from evenhand.cli.run_options import ProgressForm, run_file
from evenhand.cli.status import show_status
from evenhand.cli.stored_campaign import is_finished, repetitions_left, stored_and_source
from evenhand.cli.tables import WITHOUT_NUMBER
from evenhand.procedure import ProcedureEvent
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.procedure.host_limits import forget_limits
from evenhand.report.campaign_document import campaign_plan_report
from evenhand.report.measured import measured_report
from evenhand.run import PointState, RunStore, StorageError, read_record
from evenhand.run.campaign.dut_setup import check_fit, name_of_run, sets_up_its_dut
from evenhand.run.campaign.events import CampaignEvent, RunningFile
from evenhand.run.campaign.outline import describe
from evenhand.run.campaign.runner import CampaignRunner, Executor, HereExecutor, choose_testbed
from evenhand.run.campaign.time_left import preparing_s, time_left
from evenhand.run.campaign_status import read_status
from evenhand.run.folder import remember_source, resume_command
from evenhand.run.store import CampaignHead
from evenhand.spec.file import CampaignFile, read_campaign, read_rules
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.presets import PRESET_PREFIX
from evenhand.spec.worker_hosts import WorkerHost, read_workers


def show_outline(
    plan: CampaignPlan,
    *,
    left: dict[str, int] | None,
    testbed: str | None,
    engine: Path | None,
    is_scheduled: bool,
    json_output: bool,
) -> None:
    """What will be measured; then why it cannot be, if that is known already: RequestError or HostError as
    `check_fit`."""
    is_here = not is_scheduled and not plan.on_each_testbed and (testbed or plan.testbed) is not None
    refusal: EvenhandError | None = None
    outline = describe(plan, is_set_up=is_here and sets_up_its_dut(testbed or plan.testbed), left=left)
    if is_here:
        try:
            notes = check_fit(plan, choose_testbed(plan, testbed), engine=engine, is_dry=True)
            outline = replace(outline, notes=(*outline.notes, *notes))
        except EvenhandError as error:
            refusal = error
    if json_output:
        # One document, which has the refusal in it.
        refused = (
            None
            if refusal is None
            else {"id": refusal.code, "what": refusal.what, "where": refusal.where, "next": refusal.next_step}
        )
        write_json({"command": "run", "run": None, **outline.to_document(), "refused": refused})
        if refusal is not None:
            raise typer.Exit(refusal.exit_code)
        return
    for part in campaign_plan_report(outline):
        out().print(part)
    if refusal is not None:
        raise refusal


NOTHING_TO_REPEAT = (
    "No point ended early, and no repetition ended at the tester's ceiling: there is nothing to repeat."
)


def run_campaign(
    file: Path,
    *,
    testbed: str | None,
    rules: str | None,
    scheduler: str | None,
    workers: Path | None,
    run: Path | None,
    resume: bool,
    again: bool,
    dry_run: bool,
    html: Path | None,
    no_html: bool,
    host_name: bool,
    engine: Path | None,
    progress: ProgressForm,
    json_output: bool,
) -> None:
    """What `evenhand run` does (`run_verb.py` has its options)."""
    if again and not resume:
        raise RequestError(
            "there is nothing to repeat",
            code="cli.nothing-to-repeat",
            where="--again",
            next_step="Use it together with --resume.",
        )
    if no_html and html is not None:
        raise RequestError(
            "both a page and no page are requested",
            code="cli.options-exclude-each-other",
            where="--html, --no-html",
            next_step="Give only one of them.",
        )
    worker_hosts = None if workers is None else read_workers(workers)
    stored, source = stored_and_source(file, run, is_resumed=resume)
    plan = expand(_with_rules(read_campaign(source), rules, stored))
    if dry_run:
        show_outline(
            plan,
            left=repetitions_left(stored, again=again),
            testbed=testbed,
            engine=engine,
            is_scheduled=scheduler is not None or worker_hosts is not None,
            json_output=json_output,
        )
        return
    is_found = stored not in (None, run, file)
    if stored is not None and is_finished(stored, source, plan, again=again, is_found=is_found):
        # Nothing is to be measured, so neither root nor a tester is needed.
        status = read_status(stored)
        show_status("run", status, is_json=json_output)
        err().print(NOTHING_TO_REPEAT if again else f"{stored} is finished.", markup=False)
        if status.count(PointState.NO_NUMBER):
            raise typer.Exit(WITHOUT_NUMBER)
        return
    with ExitStack() as stack:
        executor, chosen = _executor(
            stack, plan, testbed=testbed, scheduler=scheduler, worker_hosts=worker_hosts, engine=engine
        )
        path, page = _measure(
            plan,
            executor,
            chosen,
            source=source,
            stored=stored,
            run=run,
            again=again,
            html=html,
            no_html=no_html,
            host_name=host_name,
            progress=progress,
        )
    status = read_status(path)
    show_status("run", status, is_json=json_output)
    if not json_output:
        _show_verdicts(path)
        out().print(f"Stored in {path}.", markup=False)
    page.write()
    if not json_output and page.target is not None:
        out().print(f"The page: {page.target}", markup=False, soft_wrap=True)
    if status.count(PointState.NO_NUMBER):
        raise typer.Exit(WITHOUT_NUMBER)


def _show_verdicts(path: Path) -> None:
    """What the page begins with, for each IP version with one address pair and many."""
    from evenhand.analysis import analyse
    from evenhand.report.page_head import head_verdicts

    for verdict in head_verdicts(analyse(read_record(path, with_trials=False))):
        if verdict["version"]:
            out().print(f"{verdict['version']}: {verdict['text']}", markup=False, soft_wrap=True)


def _with_rules(campaign: CampaignFile, given: str | None, stored: Path | None) -> CampaignFile:
    """The campaign with the rules that are given now, or that it began with."""
    begun = None if stored is None else read_status(stored).spec.get("rules")
    wished = begun if given is None else given
    if wished is None:
        return campaign
    return campaign.model_copy(update={"rules": read_rules(str(wished), where="--rules")})


def _executor(
    stack: ExitStack,
    plan: CampaignPlan,
    *,
    testbed: str | None,
    scheduler: str | None,
    worker_hosts: Sequence[WorkerHost] | None,
    engine: Path | None,
) -> tuple[Executor, str]:
    """Who measures, and on which testbed; what is wrong with either is reported before anything is
    measured."""
    if scheduler is None and worker_hosts is None:
        chosen = choose_testbed(plan, testbed)
        check_fit(plan, chosen, engine=engine)
        return HereExecutor(engine=engine), chosen
    by = "--scheduler" if worker_hosts is None else "--workers"
    if own := plan.spec.get("own-plans"):
        raise RequestError(
            f"{', '.join(own)}: plan files are not taken to workers",
            code="cli.plan-files-stay-here",
            where=by,
            next_step="Measure on a testbed here, or use plans that have a name.",
        )
    for option, given in (("--testbed", testbed), ("--engine", engine)):
        if given is not None:
            raise RequestError(
                f"each worker {'of the scheduler ' * (worker_hosts is None)}has its own"
                f" {option.removeprefix('--')}",
                code="cli.option-of-the-worker",
                where=f"{option}, {by}",
                next_step=f"Omit {option} here: "
                + (
                    "evenhand worker sets it." if worker_hosts is None else "it is a key of the workers file."
                ),
            )
    from evenhand.run.campaign.scheduled import connected

    if worker_hosts is not None:
        if scheduler is not None:
            raise RequestError(
                "workers that are started here have a scheduler of their own",
                code="cli.options-exclude-each-other",
                where="--workers, --scheduler",
                next_step="Give only one of them.",
            )
        from evenhand.run.campaign.started_workers import started

        own = stack.enter_context(
            started(worker_hosts, say=lambda text: err().print(text, markup=False, soft_wrap=True))
        )
        executor = stack.enter_context(
            connected(own.address, check_left=own.check_left, security=own.security)
        )
    else:
        assert scheduler is not None
        executor = stack.enter_context(connected(scheduler))
    executor.check(plan.points, plan.reference, plan.on_each_testbed)
    return executor, ""


def _measure(
    plan: CampaignPlan,
    executor: Executor,
    testbed: str,
    *,
    source: Path,
    stored: Path | None,
    run: Path | None,
    again: bool,
    html: Path | None,
    no_html: bool,
    host_name: bool,
    progress: ProgressForm,
) -> tuple[Path, LivePage]:
    """All that is left of it; the file that it is stored in, and its page."""
    spec = json.loads(json.dumps(plan.spec))
    if stored is None:
        path = run_file(source.stem.removeprefix(PRESET_PREFIX), run, no_run=False)
        assert path is not None
        head = CampaignHead(name=plan.name, source=source.name, seed=plan.seed, spec=spec)
        store = RunStore.create(
            path, command=command_line(), head=head, points=plan.points, host_name=host_name
        )
        remember_source(path, source)
        forget_limits(name_of_run(path))
    else:
        path = stored
        store = RunStore.resume(path, command=command_line(), host_name=host_name)
    page = LivePage(run=path, target=None if no_html else html or path.with_suffix(".html"))
    with _ending(store, source, page):
        if again and not store.reopen_points():
            err().print(NOTHING_TO_REPEAT)
        status = read_status(path)
        with (
            JsonCampaignProgress(err())
            if progress == "json"
            else CampaignDisplay(err(), lambda: read_status(path)) as display
        ):
            page.say = display.say
            for note in plan.notes:
                display.say(f"Note: {note}")
            page.write()  # whether it can be written is reported before anything is measured
            running = RunningFile(path)

            @contained
            def on_event(event: CampaignEvent | ProcedureEvent) -> None:
                running.on_event(event)
                display.on_campaign_event(event)

            @contained
            def say_expected() -> None:
                """When the lab is ours, if there is one: a campaign that is refused takes no time."""
                left = sum(point.left for point in status.points)
                finds_rules = plan.rules == "auto" and store.lab_rules() is None
                still = time_left(status.points).then(
                    preparing_s(
                        (point.point for point in status.points if point.left), finds_rules=finds_rules
                    )
                )
                display.expect(
                    ExpectedTime(
                        seconds=still.stated_s,
                        most_s=still.stated_most_s,
                        parts=f"{format_count(left)} repetition{' is' if left == 1 else 's are'} left",
                        assumes=(
                            "at the pace so far"
                            if any(point.finished for point in status.points)
                            else "if no trial must be repeated"
                        ),
                    )
                )

            try:
                CampaignRunner(
                    plan=plan,
                    store=store,
                    executor=executor,
                    testbed=testbed,
                    engine=executor.engine if isinstance(executor, HereExecutor) else None,
                    on_event=on_event,
                    on_point=page.after_point,
                    on_ready=say_expected,
                ).run()
            finally:
                running.end()
    return path, page


@contextmanager
def _ending(store: RunStore, source: Path, page: LivePage) -> Iterator[None]:
    """However it ends, the user is shown where the trials are and how to go on. What a full disk did not take
    is shown."""
    try:
        with store:
            yield
    except BaseException as error:
        console = err()
        if isinstance(error, StorageError):
            for part in measured_report(store.measured):
                console.print(part)
        if store.path.exists():
            trials = sum(read_status(store.path).verdicts.values())
            stored = "1 trial is" if trials == 1 else f"{format_count(trials)} trials are"
            console.print(
                f"{stored} stored in {store.path}. Resume with: {resume_command(store.path, source)}",
                markup=False,
            )
            page.stop()
        else:
            page.take_back()
            console.print("No trial is stored.", markup=False)
        raise
