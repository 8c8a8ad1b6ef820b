# SPDX-License-Identifier: Apache-2.0
"""`evenhand throughput`: the highest load that the DUT forwards without loss."""

from __future__ import annotations

from evenhand.base.errors import RequestError
from evenhand.base.time_span import TimeSpan
from evenhand.cli.common import TestbedArgument, out, write_json
from evenhand.cli.conditions import ConditionOptions
from evenhand.cli.options import with_options
from evenhand.cli.single_pair import SinglePairOptions, read_single_pair
from evenhand.cli.tables import exit_code_of, show_found
from evenhand.plan import Traffic
from evenhand.procedure import Conditions, SinglePair
from evenhand.procedure.expected_time import search_span
from evenhand.procedure.registry import THROUGHPUT
from evenhand.procedure.throughput import ThroughputOptions, too_few
from evenhand.report.throughput import search_lines, search_tables
from evenhand.rig import TestbedLimits
from evenhand.search import Role
from evenhand.spec.common_options import RepetitionOptions, RetryOptions
from evenhand.spec.frames import FrameSizesOption, read_frame_sizes

ONE_PAIR = "throughput, one address pair"


def throughput(
    testbed: TestbedArgument,
    *,
    frame_size: FrameSizesOption = None,
    options: ThroughputOptions,
    repetition: RepetitionOptions,
    single_pair: SinglePairOptions,
    retries: RetryOptions,
    conditions: ConditionOptions,
) -> int | None:
    given = conditions.read(testbed)
    single_pair.check(given.plan)
    sizes, notes = read_frame_sizes(given.plan, frame_size)
    repetitions = repetition.read()
    if single_pair.after is not None and len(sizes) > 1:
        raise RequestError(
            f"a run to compare with has one frame size, but {len(sizes)} are given",
            code="cli.one-frame-size-only",
            where="--after, --frame-size",
            next_step="Use --single-pair-first, or one frame size.",
        )
    # What is wrong with the options is reported before the file is read.
    THROUGHPUT.make_goal(options, retries.read(TestbedLimits()), None)
    setup = given.read_setup()
    chosen = THROUGHPUT.make_goal(options, retries.read(setup.testbed.limits), None)
    if options.maximum_rate is not None:
        given.check_rate(setup, chosen.max_fps, sizes, where=THROUGHPUT.load_option.where)
    before = None
    if single_pair.after is not None:
        before = read_single_pair(
            single_pair.after,
            setup,
            given.plan,
            frame_size=sizes[0],
            directions=given.conditions["directions"],
            loss_ratio=chosen.loss_ratio,
        )
    times = len(sizes) * (repetitions.count + single_pair.single_pair_first)
    expected = given.expect(THROUGHPUT, chosen, times=times)
    with given.open(THROUGHPUT.name, setup, notes, expected=expected) as (bed, store, progress):
        if len(sizes) > 1 or repetitions.count > 1:
            same = Conditions(**given.of(setup, loss_ratio=chosen.loss_ratio), single_pair=before)
            first_too = single_pair.single_pair_first
            table = bed.throughput_table(
                sizes, repetitions=repetitions, goal=chosen, single_pair_first=first_too, **same
            )
            show_found(THROUGHPUT, table, store, is_json=conditions.json_output)
            return exit_code_of(THROUGHPUT, table.to_document())
        same = given.of(setup, frame_size=sizes[0], loss_ratio=chosen.loss_ratio)
        first = None
        if single_pair.single_pair_first:
            progress.say(f"1 of 2: {given.plan.label}, one address pair.", style="bold")
            one_pair: Conditions = {**same, "plan": given.plan.single_pair()}
            progress.later = search_span(chosen, same["waits"].total_s)
            first = bed.throughput(goal=chosen, name=ONE_PAIR, role=Role.SINGLE_PAIR, **one_pair)
            before = SinglePair.of(first.search, first.profile)
            progress.later = TimeSpan.of(0.0)
            progress.say(
                f"2 of 2: {Traffic(plan=given.plan, directions=same['directions']).address_words}.",
                style="bold",
            )
        found = bed.throughput(goal=chosen, **Conditions(**same, single_pair=before))
    if conditions.json_output:
        document = {
            "command": THROUGHPUT.name,
            "run": None if store is None else str(store.path),
            **found.to_document(),
        }
        if first is not None:
            document["first_search"] = first.to_document()
        write_json(document)
        return exit_code_of(THROUGHPUT, found.to_document())
    console = out()
    if first is not None:
        for part in search_tables(first.search, title="Trials with one address pair"):
            console.print(part)
            console.print()
        for line in search_lines(first.search, first.profile):
            console.print(line, markup=False)
        console.print()
    for part in search_tables(found.search):
        console.print(part)
        console.print()
    for line in search_lines(found.search, found.profile):
        console.print(line, markup=False)
    for deviation in too_few(1):
        console.print(deviation.line, markup=False)
    if store is not None:
        console.print(f"Stored in {store.path}.", markup=False)
    return exit_code_of(THROUGHPUT, found.to_document())


throughput.__doc__ = THROUGHPUT.help
throughput = with_options(throughput)
