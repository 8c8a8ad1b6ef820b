# SPDX-License-Identifier: Apache-2.0
"""Specification: a file becomes points in the order of the file, and jobs in the order of measuring. What
cannot be is refused here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product, takewhile
from typing import Any, Literal, TypeAlias

from evenhand.base.errors import RequestError
from evenhand.base.folders import without_folders
from evenhand.base.units import format_count
from evenhand.plan import (
    ONE_EACH,
    AddressPlan,
    FrameSize,
    Imix,
    SideCounts,
    check_flow_directions,
    is_plan_file,
    largest_frame,
    largest_octets,
    routes_of,
    with_routes,
)
from evenhand.procedure import check_whole_sizes, choose_frames
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.registry import PROCEDURES, THROUGHPUT
from evenhand.rig import REFERENCE, tag_octets
from evenhand.spec.file import DEFAULT_REPETITIONS, CampaignFile, Hooks, Reference, Suite
from evenhand.spec.frames import read_frame_sizes, read_size
from evenhand.spec.own_plan import register_own_plan
from evenhand.spec.place import placed
from evenhand.spec.plan import HOSTS, NETWORKS, PLAN_OPTIONS, build_plan, read_directions
from evenhand.spec.request import AFTER, ROUTES, HashType, Point, plan_of, point_defaults, read_point

MOST_POINTS = 10_000
"""The most points of a campaign: at a minute each they take a week."""
MOST_SUITES = 500
MOST_DOUBLED = 17
"""Numbers of hosts that `doubling` gives, at most."""
MOST_ENTRIES = 5_000
"""The most entries of a list, such as `hosts`: each is a point."""


def check_sizes(file: CampaignFile) -> None:
    """RequestError for more suites, or longer lists, than there may be."""
    if len(file.suite) > MOST_SUITES:
        raise _too_many(f"{format_count(len(file.suite))} suites", MOST_SUITES, "suites", file.where)
    for suite in file.suite:
        for key, entries in (
            ("hosts", suite.host_counts),
            ("routes", suite.routes or ()),
            ("frame-sizes", suite.frame_sizes or ()),
        ):
            if len(entries) > MOST_ENTRIES:
                what = f"{format_count(len(entries))} entries"
                raise _too_many(what, MOST_ENTRIES, "entries", file.where_of(suite.name, key))
    points = sum(
        sum(MOST_DOUBLED if each == "doubling" else 1 for each in suite.host_counts)
        * max(1, len(suite.routes or ()))
        * max(1, len(suite.frame_sizes or ()))
        * len(suite.procedure)
        * max(1, len(suite.hash_types or ()))
        for suite in file.suite
    )
    check_points(points, file.where)


def check_points(point_count: int, where: str) -> None:
    """RequestError for more points than a campaign may have."""
    if point_count > MOST_POINTS:
        raise _too_many(f"{format_count(point_count)} points", MOST_POINTS, "points", where)


def _too_many(what: str, most: int, things: str, where: str) -> RequestError:
    return RequestError(
        f"{what} are more than a campaign may have",
        code="spec.too-many",
        where=where,
        next_step=f"Ask for at most {format_count(most)} {things}, or make several campaigns of it.",
    )


DOUBLING, MAXIMUM = "doubling", "max"
COSTLY_ROUNDS = 2
"""Where the DUT is set up for a point by hand, by a hook, or for its hash: the fewest that keep a drift apart
from the addresses."""
ONE_PAIR = (ONE_EACH, ONE_EACH)
"""Hosts and networks of both sides (SEED-02)."""
_Counted: TypeAlias = tuple[SideCounts, SideCounts, SideCounts | None]
"""Hosts, networks and, in a series over them, routes of both sides."""
_STRUCTURE = (
    "name",
    "procedure",
    "plan",
    "hosts",
    "networks",
    "frame-sizes",
    "hash-types",
    "repetitions",
    "rounds",
    "inner-repetitions",
    "one-pair-first",
    "hooks",
    "direction",
    *(each.name for each in PLAN_OPTIONS.values()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPlan:
    """A campaign as it will be measured."""

    name: str
    seed: int
    round_order: str
    """`in-turn` or `shuffled`."""
    spec: Mapping[str, Any]
    """The file as it was understood, every default filled in, by the keys of the file; fit for JSON. No
    folders."""
    points: tuple[Point, ...]
    """Points in the order of the file: suite by suite, the single address pair first in each (SEED-02)."""
    hooks: Hooks
    """Hooks of the campaign."""
    suite_hooks: Mapping[str, Hooks]
    """Hooks by suite: its own over the campaign's."""
    testbed: str | None
    """Testbed as it is found from here: a file, `lab:linux`, or `reference`. None: the file names none."""
    reference: Reference | None
    """Set if the testbed is, or may be, `reference`."""
    on_each_testbed: tuple[str, ...] = ()
    """Workers on each of which every point is measured; empty: on any one."""
    notes: tuple[str, ...] = ()
    """What is not as it may look in the file."""
    rules: int | Literal["auto"] | None = None
    """See `CampaignFile.rules`; none are 0."""
    repeats_undecided: bool = False
    """See `CampaignFile.repeat_undecided`."""

    def numbers_on(self, point: Point, testbed: str) -> range:
        """Numbers of the repetitions that this testbed measures; all of them if no testbeds are named."""
        if testbed not in self.on_each_testbed:
            return range(1, point.repetitions + 1)
        place, share = self.on_each_testbed.index(testbed), point.repetitions // len(self.on_each_testbed)
        return range(place * share + 1, (place + 1) * share + 1)

    def numbers_in_round(self, point: Point, number: int) -> tuple[int, ...]:
        """Numbers of the repetitions that are made in this round, from 1: on each testbed as many as in any
        other round, or one more."""
        found: list[int] = []
        for testbed in self.on_each_testbed or ("",):
            numbers = self.numbers_on(point, testbed)
            begin, end = (len(numbers) * ended // point.rounds for ended in (number - 1, number))
            found += numbers[begin:end]
        return tuple(found)


def expand(file: CampaignFile) -> CampaignPlan:
    """All points of a campaign. Whatever can be refused without a DUT is refused here, before anything is
    measured.

    Raises:
        RequestError: Names the file, the suite and the key.
    """
    points: list[Point] = []
    suites = []
    check_sizes(file)
    places: dict[str, str] = {}
    if file.own_plan is not None:
        register_own_plan(file.own_plan)
    for suite in file.suite:
        where = f"{file.where}: suite {suite.name!r}"
        _check_hash_types(suite, file, where)
        _check_options(suite, file)
        found = _points_of(suite, file, where)
        _check_title(places, found[0].plan, file.plan_place(suite), file.where_of(suite.name, "plan"))
        points += found
        suites.append(_spec_of(suite, found))
    _check_keys(points, file.where)
    if file.testbed == REFERENCE or file.reference is not None:
        _check_reference(file, points)
    points = [
        replace(point, repetitions=point.repetitions * max(1, len(file.on_each_testbed))) for point in points
    ]
    spec = {
        **{key: value for key, value in file.to_document().items() if key != "plan" or value is not None},
        "testbed": without_folders(file.testbed),
        "hooks": _spec_of_hooks(file.hooks),
        "suite": suites,
        **_own_plans(points),
    }
    return CampaignPlan(
        name=file.name,
        seed=file.seed,
        round_order=file.round_order,
        spec=spec,
        points=tuple(points),
        hooks=file.hooks,
        suite_hooks={suite.name: suite.hooks.over(file.hooks) for suite in file.suite},
        testbed=file.testbed_place,
        reference=file.reference or (Reference() if file.testbed == REFERENCE else None),
        on_each_testbed=file.on_each_testbed,
        notes=tuple(file.notes),
        rules=0 if file.rules == "none" else file.rules,
        repeats_undecided=file.repeat_undecided,
    )


def _check_title(places: dict[str, str], title: str, place: str, where: str) -> None:
    """RequestError if two plan files have one title: points would send what another suite means."""
    known = places.setdefault(title, place)
    if known != place and is_plan_file(known) | is_plan_file(place):
        raise RequestError(
            f"{place} and {known} are both named {title!r}",
            code="spec.plan-name-twice",
            where=where,
            next_step='Give one another name, such as name = "edge-2".',
        )


def _own_plans(points: Sequence[Point]) -> dict[str, Any]:
    """What was sent of plan files, so that a campaign is not gone on with when one was changed."""
    plans = {point.plan: plan_of(point, is_whole=True) for point in points}
    found = {title: plan.to_contract() for title, plan in plans.items() if plan.is_own}
    return {"own-plans": found} if found else {}


def _points_of(suite: Suite, file: CampaignFile, where: str) -> list[Point]:
    for given, key in ((suite.procedure, "procedure"), (suite.hash_types or (), "hash-types")):
        _check_once(given, f"{where}: {key}")
    with placed(where):
        written_networks = None if suite.network_counts is None else str(suite.network_counts)
        network_counts = NETWORKS.read(written_networks, where=NETWORKS.key)
        written = {key: suite.written(each.name) for key, each in PLAN_OPTIONS.items() if key != ROUTES}
        options = {key: value for key, value in written.items() if value != PLAN_OPTIONS[key].default}
        whole = build_plan(file.plan_place(suite), None, network_counts, options)
        sizes, _ = read_frame_sizes(whole, [str(size) for size in suite.frame_sizes or ()])
        counts = _counts(suite, whole) if suite.routes is None else _route_counts(suite, whole)
        directions = read_directions(suite.written("direction"))
        check_flow_directions(whole.flows, directions)
    check_points(len(counts) * len(sizes) * len(suite.procedure) * len(suite.hash_types or (None,)), where)
    # What gives a throughput comes before what takes it.
    procedures = sorted((PROCEDURES[name] for name in suite.procedure), key=lambda p: not p.gives_throughput)
    hash_types: tuple[HashType | None, ...] = suite.hash_types or (None,)
    points: list[Point] = []
    for (hosts, networks, routes), procedure, size, hash_type in product(
        counts, procedures, sizes, hash_types
    ):
        goal = point_defaults(procedure) | _given(suite, procedure)
        n = f"n={hosts.written}" + (
            f",r={networks.written}" if whole.left.host_range.network_range is not None else ""
        )
        if routes is not None:
            n = f"{ROUTES}={routes.written}"
        parts = [
            suite.name,
            procedure.name,
            _short(size),
            *([hash_type] if len(hash_types) > 1 and hash_type else []),
            n,
        ]
        if _takes_throughput(procedure, goal, suite, where):
            goal[AFTER] = "/".join(str(part) for part in (suite.name, THROUGHPUT.name, *parts[2:]))
        repetitions = suite.repetitions or (1 if procedure.repeats_itself else DEFAULT_REPETITIONS)
        point = Point(
            key="/".join(str(part) for part in parts),
            suite=suite.name,
            number=len(points),
            procedure=procedure.name,
            plan=whole.title,
            plan_options=options if routes is None else {**options, ROUTES: routes.written},
            hosts=hosts,
            networks=networks,
            frame_size=_short(size),
            directions=directions,
            hash_type=hash_type,
            goal=goal,
            repetitions=repetitions,
            rounds=_rounds_of(suite, file, repetitions),
        )
        with placed(where):
            if not procedure.frame_sizes.takes_mixes:
                check_whole_sizes([size])
            read_point(point)
        points.append(point)
    return points


def _rounds_of(suite: Suite, file: CampaignFile, repetitions: int) -> int:
    """RequestError for one round of several repetitions: then nothing distinguishes a drift of the DUT from
    an effect of its addresses."""
    if suite.rounds == 1 and repetitions > 1:
        raise RequestError(
            f"1 round of {repetitions} repetitions: the repetitions of a point would be made"
            " one after the other, and a DUT that drifts in the meantime would look"
            " like one that depends on its addresses",
            code="spec.one-round-only",
            where=file.where_of(suite.name, "rounds"),
            next_step="Write 2 or more, or repetitions = 1.",
        )
    hooks = suite.hooks.over(file.hooks)
    is_costly = (
        file.round_order == "in-turn"
        or hooks.before_point
        or hooks.after_point
        or len(suite.hash_types or ()) > 1
    )
    return min(repetitions, suite.rounds or (COSTLY_ROUNDS if is_costly else repetitions))


def _check_hash_types(suite: Suite, file: CampaignFile, where: str) -> None:
    """RequestError for a hash that the DUT cannot be set to (SEED-69)."""
    for hash_type in suite.hash_types or ():
        if file.dut_hashing is not None and hash_type not in file.dut_hashing.hash_types:
            raise RequestError(
                f"{hash_type}: {file.dut_hashing.reason}",
                code="spec.hash-not-settable",
                where=f"{where}: hash-types",
                next_step=f"Use {' or '.join(file.dut_hashing.hash_types)}.",
            )


def _check_reference(file: CampaignFile, points: Sequence[Point]) -> None:
    """RequestError for a router that cannot be, or frames that it would not take."""
    for point in points:
        with placed(f"{file.where}: reference"):
            dut = (file.reference or Reference()).dut(point.hash_type)
        with placed(f"{file.where}: suite {point.suite!r}"):
            size = read_size(point.frame_size)
            plan, tags = plan_of(point), tag_octets(dut.vlans)
            chosen, _ = choose_frames(plan, size, tag_octets=tags)
            streams = plan.streams(chosen, point.directions, tag_octets=tags)
            if largest_frame(streams, has_tags=False) > dut.largest_frame_size:
                raise RequestError(
                    f"{point.frame_size}: the reference router accepts frames of at most"
                    f" {dut.largest_frame_size} octets",
                    code="spec.frame-too-large",
                    where="frame-sizes",
                    next_step=f"Write largest-frame = {largest_octets(chosen)} in [reference].",
                )


def _check_options(suite: Suite, file: CampaignFile) -> None:
    """RequestError for an option that no procedure of the suite has: it would be without effect."""
    procedures = [PROCEDURES[name] for name in suite.procedure]
    known = {option for procedure in procedures for option in point_defaults(procedure)}
    for name, field in type(suite).model_fields.items():
        option = field.alias or name
        if name not in suite.model_fields_set or option in _STRUCTURE or option in known:
            continue
        raise RequestError(
            f"{option!r} is not an option of {' or '.join(suite.procedure)}",
            code="spec.unknown-option",
            where=file.where_of(suite.name, option),
            next_step=f"Known here: {', '.join(sorted(known - {'repetitions'}))}.",
        )
    if suite.inner_repetitions is not None and not any(each.repeats_itself for each in procedures):
        repeating = ", ".join(name for name, each in PROCEDURES.items() if each.repeats_itself)
        raise RequestError(
            f"{' and '.join(suite.procedure)}: not a procedure that repeats its trials itself",
            code="spec.not-repeating-trials",
            where=file.where_of(suite.name, "inner-repetitions"),
            next_step=f"Write repetitions; inner-repetitions apply only to {repeating}.",
        )


def _given(suite: Suite, procedure: Procedure) -> dict[str, Any]:
    """What the suite says of the procedure's options."""
    names = [name for name in point_defaults(procedure) if name != "repetitions"]
    found = {name: value for name in names if (value := suite.written(name)) is not None}
    if suite.inner_repetitions is not None and procedure.repeats_itself:
        found["repetitions"] = suite.inner_repetitions
    return {option: list(value) if isinstance(value, tuple) else value for option, value in found.items()}


def _route_counts(suite: Suite, whole: AddressPlan) -> list[_Counted]:
    """All hosts of so many prefixes for each point; a single route first."""
    if suite.host_counts != (MAXIMUM,):
        raise RequestError(
            "hosts and routes are two series",
            code="spec.hosts-and-routes",
            where=HOSTS.key,
            next_step="Omit one: a point of routes has all hosts of its prefixes.",
        )
    option, most = PLAN_OPTIONS[ROUTES], routes_of(whole)
    counts: list[SideCounts] = []
    for value in suite.routes or ():
        written = option.read(str(value), where=ROUTES) if value != MAXIMUM else most
        # Refuses a plan without a list, and more than there are.
        found = routes_of(
            with_routes(whole, SideCounts(*written) if isinstance(written, tuple) else written or 1)
        )
        assert found is not None
        if found in counts:
            raise RequestError(
                f"{found.written} routes are listed twice",
                code="spec.listed-twice",
                where=ROUTES,
                next_step="Write each number once.",
            )
        counts.append(found)
    if ONE_EACH in counts or suite.one_pair_first:
        counts = [ONE_EACH, *(each for each in counts if each != ONE_EACH)]
    return [(with_routes(whole, each).hosts, whole.networks, each) for each in counts]


def _counts(suite: Suite, whole: AddressPlan) -> list[_Counted]:
    """Hosts and networks of each point; that with one address pair first."""
    most, networks = whole.hosts, whole.networks
    counts: list[SideCounts] = []
    for value in suite.host_counts:
        if value == DOUBLING:
            below = takewhile(lambda n: n < min(most), (2**k for k in count()))
            found = [*(SideCounts(n, n) for n in below), most]
        elif value == MAXIMUM:
            found = [most]
        else:
            written = HOSTS.read(str(value), where=HOSTS.key)
            found = [SideCounts(*(written if isinstance(written, tuple) else (written or 1, written or 1)))]
        for pair in found:
            if pair in counts:
                raise RequestError(
                    f"{pair.written} hosts are listed twice",
                    code="spec.listed-twice",
                    where="hosts",
                    next_step="Write each number once.",
                )
            counts.append(pair)
    pairs = [(hosts, networks) for hosts in counts]
    if ONE_PAIR in pairs or suite.one_pair_first:
        pairs = [ONE_PAIR, *(pair for pair in pairs if pair != ONE_PAIR)]
    return [(*pair, None) for pair in pairs]


def _takes_throughput(procedure: Procedure, goal: Mapping[str, Any], suite: Suite, where: str) -> bool:
    """Whether the point's load comes from the throughput that its suite measures."""
    use = procedure.throughput
    if use is None or goal.get(use.option) is not None:
        return False
    if any(PROCEDURES[name].gives_throughput for name in suite.procedure):
        return True
    if use.is_needed:
        raise RequestError(
            f"{procedure.name}: no load given",
            code="spec.no-load",
            where=f"{where}: {use.option}",
            next_step=f'Write procedure = ["{THROUGHPUT.name}", "{procedure.name}"], which uses the'
            f' measured throughput, or a rate such as {use.option} = "500kfps".',
        )
    return False


def _spec_of(suite: Suite, points: Sequence[Point]) -> dict[str, Any]:
    """The suite with every default, also those that depend on the plan and the procedures."""
    written = suite.to_document()
    return {
        **{
            key: written[key]
            for key in _STRUCTURE
            if key in written and key not in ("inner-repetitions", "rounds", ROUTES)
        },
        "rounds": {point.procedure: point.rounds for point in points},
        "hooks": _spec_of_hooks(suite.hooks),
        **({} if suite.routes is None else {ROUTES: [each.written for each in _series(points)]}),
        "hosts": [hosts.written for hosts in dict.fromkeys(point.hosts for point in points)],
        "frame-sizes": list(dict.fromkeys(point.frame_size for point in points)),
        "repetitions": {point.procedure: point.repetitions for point in points},
        "options": {
            point.procedure: {name: value for name, value in point.goal.items() if name != AFTER}
            for point in points
        },
    }


def _series(points: Sequence[Point]) -> list[SideCounts]:
    return list(dict.fromkeys(point.routes for point in points if point.routes is not None))


def _spec_of_hooks(hooks: Hooks) -> dict[str, Any]:
    """A command without the folders of its words: they say more about a run's owner than about the run."""
    return {
        key: " ".join(without_folders(value.split(" "))) if isinstance(value, str) else value
        for key, value in hooks.to_document().items()
    }


def _check_once(values: Sequence[Any], where: str) -> None:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise RequestError(
            f"{twice!r} is listed twice", code="spec.listed-twice", where=where, next_step="Write it once."
        )


def _check_keys(points: Sequence[Point], where: str) -> None:
    """RequestError if two points have one key: they would be one in the file."""
    keys = [point.key for point in points]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RequestError(
            f"two points have the same key {twice!r}",
            code="spec.same-point-twice",
            where=where,
            next_step="Give the suites different names.",
        )


def _short(size: FrameSize) -> int | str:
    return size.short if isinstance(size, Imix) else size
