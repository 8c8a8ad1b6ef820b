# SPDX-License-Identifier: Apache-2.0
"""Specification: campaign file: the user's TOML becomes a checked, frozen `CampaignFile`. Errors name the
key, its place and the nearest right one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    create_model,
    model_validator,
)

from evenhand.base.errors import RequestError
from evenhand.base.option import OptionField, fill, options_of
from evenhand.base.units import DURATION, is_whole, parse_duration
from evenhand.base.validation.checked_file import (
    FileKind,
    RefusedError,
    UnfitError,
    headings,
    read_toml,
    refusal,
    unknown_key,
    with_unit,
)
from evenhand.plan import AddressPlan, is_plan_file, make_own_plan
from evenhand.procedure.registry import PROCEDURES, THROUGHPUT
from evenhand.procedure.repetition import MOST_REPETITIONS
from evenhand.rig import DEFAULT_PLAN, MOST_RULES, REFERENCE, DutFacts, ReferenceDut, rig_of
from evenhand.spec.common_options import REPETITIONS, SEED
from evenhand.spec.frames import FRAME_SIZES
from evenhand.spec.place import place_in_suite, place_of
from evenhand.spec.plan import DIRECTION, HOSTS, NETWORKS, PLAN, PLAN_OPTIONS
from evenhand.spec.presets import EVERY_SUITE, PRESET_PREFIX, apply_preset, preset_names, unheeded
from evenhand.spec.request import HashType, point_options_of
from evenhand.spec.router import ReferenceOptions

DEFAULT_REPETITIONS = 10
"""SEED-72."""
RoundOrder = Literal["in-turn", "shuffled"]
Rules = Annotated[int, Field(ge=0, le=MOST_RULES)] | Literal["auto", "none"]


def read_rules(text: str, *, where: str) -> int | Literal["auto", "none"]:
    """How many rules the firewall of a Linux lab has: a number, none, or as many as the campaign finds out
    that it takes. RequestError if it is none of these."""
    match text:
        case "auto":
            return "auto"
        case "none":
            return "none"
    if is_whole(text) and int(text) <= MOST_RULES:
        return int(text)
    raise RequestError(
        f"{text!r} is not a number of rules",
        code="spec.not-a-number-of-rules",
        where=where,
        next_step=f"Write auto, none, or a number up to {MOST_RULES}.",
    )


def _one_or_more(value: Any) -> Any:
    if value == []:
        raise RefusedError(
            RequestError(
                "[] is empty: at least one is needed",
                code="spec.empty",
                next_step="Write at least one, or omit the key.",
            )
        )
    return [value] if isinstance(value, (str, int)) and not isinstance(value, bool) else value


def _text(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise RefusedError(
            RequestError(f"{value!r} is empty", code="spec.empty", next_step="Write a text, or omit the key.")
        )
    return value


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[tuple[Text, ...], Field(strict=False), BeforeValidator(_one_or_more)]
Count = Annotated[int, Field(ge=1)]
Duration = Annotated[float, with_unit(DURATION, parse_duration), Field(gt=0)]
HashTypes = Annotated[tuple[HashType, ...], Field(strict=False), BeforeValidator(_one_or_more)]
RouteCounts = Annotated[tuple[Count | str, ...], Field(strict=False), BeforeValidator(_one_or_more)]
HostCounts = Annotated[tuple[Count | str, ...], Field(strict=False), BeforeValidator(_one_or_more)]


def _within(option: OptionField) -> Any:
    """The bounds of an option's number, of a file's too."""
    return Field(ge=option.option.least, le=option.option.most)


def _of(option: OptionField, default: Any = None) -> Any:
    """The key that an option of the shell has in a file.

    Args:
        default: The file's own default.
    """
    return Field(default, alias=option.key)


Repeats = Annotated[int, Field(ge=1, le=MOST_REPETITIONS)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=lambda name: name.rstrip("_").replace("_", "-"),
    )

    def to_document(self) -> dict[str, Any]:
        """The document by the names that the file has, every default filled in; fit for JSON."""
        return self.model_dump(mode="json", by_alias=True)


class Hooks(_Table):
    """Commands of the user's, for a shell. None: nothing is run."""

    before_suite: Text | None = None
    after_suite: Text | None = None
    before_point: Text | None = None
    after_point: Text | None = None
    timeout: Duration = 60.0
    """Seconds that one of them may take. In the file: `"60s"`."""

    def over(self, others: Hooks) -> Hooks:
        """Those that are written here, else the others'."""
        return others.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


def _numbers(value: Any) -> Any:
    """`"0,1,2"` as `[0, 1, 2]`; anything else as it is."""
    if not isinstance(value, str):
        return value
    words = [word.strip() for word in value.split(",")]
    if not all(is_whole(word) for word in words):
        raise UnfitError(
            "write the number of an element for each entry, such as [0, 1, 2, 0]",
            code="spec.not-a-hash-table",
        )
    return [int(word) for word in words]


def _key(each: OptionField, *, has_default: bool) -> tuple[Any, Any]:
    """Type and default of an option in a file.

    Args:
        has_default: The file has the option's default; else None is that of the file.
    """
    kinds = get_args(each.kind) or (each.kind,)
    found: Any = Text
    if each.choices:
        found = Literal[tuple(map(str, each.choices))]
    elif bool in kinds:
        found = bool
    elif int in kinds:
        found = Annotated[int, _within(each)]
    elif any(get_origin(kind) is list for kind in (each.kind, *kinds)):
        found = Texts
    return (found, each.default) if has_default and each.default is not None else (found | None, None)


_OF_FILE: Mapping[str, tuple[Any, Any]] = {
    "elements": (Count | None, None),
    "table-size": (Count | None, None),
    "table": (Annotated[tuple[int, ...] | None, Field(strict=False), BeforeValidator(_numbers)], None),
    "defect": (Texts, ()),
    "largest-frame": (Count | None, None),
}
"""Type and default of those keys of `[reference]` that a file does not write as the shell does: whole numbers
are checked with the file; one defect needs no list; and the indirection table is written there itself, as
`[0, 1, 2, 0]` or `"0,1,2,0"`, not in another file, so that a campaign can be repeated from its own."""


def _reference_keys() -> dict[str, Any]:
    """The options of the router, with their defaults."""
    options = {each.name: each for each in options_of(ReferenceOptions)}
    names = dict.fromkeys(("elements", "rate", "queue-frames", *options))
    return {
        name.replace("-", "_"): _OF_FILE.get(name) or _key(options[name], has_default=True) for name in names
    }


class Reference(create_model("ReferenceKeys", __base__=_Table, **_reference_keys())):  # type: ignore[misc]
    """The reference router that is the DUT, by the options of `evenhand router`. Only for testbed =
    "reference"."""

    def dut(self, hash_type: HashType | None = None) -> ReferenceDut:
        """The DUT while a point is measured. RequestError names the option.

        Args:
            hash_type: Hash type of the point; None: that of the table.
        """
        written = self.to_document()
        # Without elements nothing is hashed, whatever the point says of the DUT.
        if hash_type is not None and self.elements is not None:
            written["hash"] = hash_type
        if self.table is not None:
            written["table"] = self.table  # a tuple, which the document has as a list
        if self.largest_frame is not None:
            written["largest-frame"] = str(self.largest_frame)
        return fill(ReferenceOptions, written).dut()


def _facts(value: Any) -> Any:
    return (
        {str(key).replace("-", "_"): item for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


class Published(_Table):
    """A published experiment, shown next to what is measured. Nothing is measured or judged by it
    (SEED-07)."""

    name: Text
    source: Text
    plan: Text | None = None
    """Plan of the series that `rises-up-to` and `falls-above` describe."""
    dut: Annotated[DutFacts, BeforeValidator(_facts)] = DutFacts()
    """Facts by the keys of the testbed file's `[dut.facts]`, as is `tester` (SEED-62, SEED-63)."""
    tester: Annotated[DutFacts, BeforeValidator(_facts)] = DutFacts()
    rises_up_to: Count | None = None
    """Hosts a side up to which the throughput increased (SEED-66)."""
    falls_above: Count | None = None
    """Hosts a side above which it decreased; None: it did not."""
    note: Text | None = None


class DutHashing(_Table):
    """What is known of the DUT before it is tested: suites that it cannot take part in are refused."""

    hash_types: HashTypes
    """All that it can be set to."""
    reason: Text
    """Why no others."""


class Suite(_Table):
    """A series of points with one address plan. Beside these keys it has the options of all procedures, by
    the names that their verbs have (`campaign_model`)."""

    name: Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[^/\s][^/]*$")]
    procedure: Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_one_or_more)] = (
        THROUGHPUT.name,
    )
    """Names of `PROCEDURES`."""
    plan: Text = _of(PLAN, DEFAULT_PLAN)
    host_counts: HostCounts = _of(HOSTS, ("max",))
    """Per side: numbers, "N,M" for left and right, "doubling" (SEED-65), "max"."""
    network_counts: Count | str | None = _of(NETWORKS)
    routes: RouteCounts | None = None
    """How many prefixes of a plan file are used: numbers, also `"4k"` and `"1M"`, "N,M" for left and right,
    "max". The DUT has all of them throughout. None: all are used, with the numbers of `hosts`."""
    frame_sizes: (
        Annotated[tuple[Count | str, ...], Field(strict=False), BeforeValidator(_one_or_more)] | None
    ) = _of(FRAME_SIZES)
    """None: the smallest."""
    hash_types: HashTypes | None = None
    """What the DUT is set to. None: the file does not say."""
    repetitions: Repeats | None = _of(REPETITIONS)
    """Complete executions of a point. None: 10 (SEED-72); 1 of a procedure that repeats itself."""
    rounds: Repeats | None = None
    """Number of rounds over all points of the suite in which the repetitions are made. None: one for each
    repetition; 2 where setting up the DUT for a point may cost much (`points.COSTLY_ROUNDS`)."""
    inner_repetitions: Repeats | None = None
    """`--repetitions` of latency, pdv, back-to-back and recovery. None: as the verb has it."""
    one_pair_first: bool = True
    """Whether a point with a single address pair is put first if there is none (SEED-02); of `routes`, one
    with a single route."""
    hooks: Hooks = Hooks()

    def written(self, option: str) -> Any:
        """What the file says of an option, by its name; its default if it says nothing."""
        names = {field.alias or name: name for name, field in type(self).model_fields.items()}
        return getattr(self, names[option])


class CampaignFile(_Table):
    """A whole campaign as it is asked for, presets resolved."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    preset: Text | None = None
    testbed: Text | None = None
    """A testbed file, in this folder or by its path from here; `lab:linux`; or `reference`. None: it is named
    when the campaign runs."""
    on_each_testbed: Texts = ()
    """Names of workers, on each of which every point is measured with all its repetitions. Empty: on any
    one."""
    seed: Annotated[int, _within(SEED)] = _of(SEED, SEED.default)
    round_order: RoundOrder = "shuffled"
    rules: Rules | None = None
    """How many rules the firewall of `lab:linux` has; None: those of a lab that is up. No other testbed heeds
    it."""
    repeat_undecided: bool = False
    """Whether repetitions that the tester could not decide are made once more when all others have ended, as
    long as they are few: what disturbed it may be over."""
    hooks: Hooks = Hooks()
    reference: Reference | None = None
    dut_hashing: DutHashing | None = None
    plan: dict[str, Any] | None = None
    """A plan file's keys: the plan of every suite that names no other."""
    published: Annotated[tuple[Published, ...], Field(strict=False)] = ()
    suite: Annotated[tuple[Suite, ...], Field(strict=False)]
    """Each a table of the class that `campaign_model` makes."""

    _where: str = PrivateAttr(default="campaign")
    _folder: Path = PrivateAttr(default=Path())
    _document: dict[str, Any] = PrivateAttr(default={})
    _own_plan: AddressPlan | None = PrivateAttr(default=None)

    @property
    def where(self) -> str:
        """The file, for errors."""
        return self._where

    def where_of(self, suite: str, key: str) -> str:
        """Where a key of a suite is written, for errors: there, or in `[every-suite]`."""
        return f"{self._where}: {place_in_suite(self._document, suite, key)}"

    @property
    def notes(self) -> list[str]:
        """What is not as it may look in the file."""
        return unheeded(self._document)

    @property
    def testbed_place(self) -> str | None:
        """The testbed as it is found from here."""
        if self.testbed is None or not rig_of(self.testbed).is_file:
            return self.testbed
        return str(self._folder / self.testbed)

    @property
    def own_plan(self) -> AddressPlan | None:
        """That of `[plan]`."""
        return self._own_plan

    def plan_place(self, suite: Suite) -> str:
        """The plan of a suite by its name, that of a plan file as it is found from here."""
        if self._own_plan is not None and "plan" not in suite.model_fields_set:
            return self._own_plan.title
        return str(self._folder / suite.plan) if is_plan_file(suite.plan) else suite.plan

    @model_validator(mode="after")
    def _suites_differ(self) -> CampaignFile:
        names = [suite.name for suite in self.suite]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UnfitError(f"two suites are named {twice!r}", code="spec.same-suite-twice")
        if len(set(self.on_each_testbed)) < len(self.on_each_testbed):
            raise UnfitError("on-each-testbed names the same testbed twice", code="spec.listed-twice")
        if self.reference is not None and self.testbed not in (None, REFERENCE):
            raise UnfitError(
                f'[reference] describes the DUT of testbed = "{REFERENCE}", but the testbed'
                f" is {self.testbed!r}",
                code="spec.reference-not-here",
            )
        return self


def campaign_model() -> type[CampaignFile]:
    """The tables of a campaign file, with the options of all procedures there are."""
    return _model_of(tuple(PROCEDURES))


@cache
def _model_of(procedures: tuple[str, ...]) -> type[CampaignFile]:
    options = [*PLAN_OPTIONS.values(), DIRECTION]
    options += [each for name in procedures for each in point_options_of(PROCEDURES[name])]
    keys: dict[str, Any] = {}
    for each in options:
        name = each.name.replace("-", "_")
        if name not in (
            "repetitions",
            "routes",
        ):  # those within one execution are `inner-repetitions`; `Suite` has a series of routes
            # What a procedure's options are by default is left to them.
            is_of_plan = each is DIRECTION or PLAN_OPTIONS.get(each.field) is each
            key = _key(each, has_default=is_of_plan)
            keys.setdefault(f"{name}_" if iskeyword(name) else name, key)
    names = Annotated[tuple[Literal[procedures], ...], BeforeValidator(_one_or_more)]  # type: ignore[valid-type]
    procedure = (names, Field(default=(THROUGHPUT.name,), strict=False))
    suite = create_model("Suite", __base__=Suite, procedure=procedure, **keys)
    suites = Annotated[tuple[suite, ...], Field(strict=False)]  # type: ignore[valid-type]
    return create_model("CampaignFile", __base__=CampaignFile, suite=(suites, ...))


def read_campaign(path: Path) -> CampaignFile:
    """Read and check a campaign file and the preset that it names; touches nothing else.

    Args:
        path: Path of the file; or `preset:NAME`, a preset as it is.

    Raises:
        RequestError: It cannot be read, there is no such preset, or a key is unknown, missing or wrong.
    """
    if path.name.startswith(PRESET_PREFIX):
        document = {"preset": path.name.removeprefix(PRESET_PREFIX)}
        return make_campaign(document, where=path.name, preset_where=path.name)
    if path.name in preset_names() and not path.exists():
        raise RequestError(
            "this file does not exist",
            code="spec.no-such-file",
            where=str(path),
            next_step=f"To use the preset of this name: {PRESET_PREFIX}{path.name}",
        )
    return make_campaign(read_toml(path, kind=FileKind.CAMPAIGN), where=str(path), folder=path.parent)


def make_campaign(
    document: dict[str, Any], *, where: str, folder: Path = Path(), preset_where: str | None = None
) -> CampaignFile:
    """Check a document of the campaign file's shape. RequestError as in `read_campaign`.

    Args:
        folder: The folder from which the testbed is found.
        preset_where: See `apply_preset`.
    """
    _check_top(document, where)
    whole = apply_preset(document, where=where, preset_where=preset_where)
    try:
        campaign = campaign_model().model_validate(whole)
    except ValidationError as error:
        raise refusal(
            error,
            campaign_model(),
            where=where,
            place=partial(place_of, whole=whole, document=document),
            advice={},
        ) from error
    campaign._where, campaign._folder, campaign._document = where, folder, document
    if campaign.plan is not None:
        campaign._own_plan = make_own_plan(campaign.plan, where=f"{where}: plan", folder=folder)
    return campaign


def _check_top(document: Mapping[str, Any], where: str) -> None:
    """RequestError for an unknown key at the top: a misspelt [[suite]] is not missing, and nothing else is
    reported of such a file."""
    known = headings(campaign_model()) | {EVERY_SUITE: f"[{EVERY_SUITE}]"}
    for key in document:
        if key.replace("_", "-") not in known:
            raise unknown_key(key, list(known), where=f"{where}: {key}", written=known)
