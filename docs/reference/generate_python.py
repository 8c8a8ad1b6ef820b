#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/python.md from the docstrings of what `evenhand` exports; `make docs` runs it,
tests/docs/ compares."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from enum import Enum
from pathlib import Path
from typing import Any

import evenhand

PAGE = Path(__file__).with_name("python.md")
HEAD = """# Python

<!-- Written by docs/reference/generate_python.py; `make docs` writes it again. -->

This page lists what `import evenhand` offers, and at its end functions of other modules over stored runs; all of it is typed.
[Measure from Python](../how-to/measure-from-python.md) has examples.
Rates are frames per second per direction, durations are seconds, frame sizes octets with the FCS, ratios from 0 to 1.
A field without a default must be given; `None` is not shown as a default.
"""  # noqa: E501  (Markdown)
SECTIONS = (
    (
        "Measuring",
        ("open_testbed", "OpenTestbed", "Conditions", "make_plan", "read_plan_file", "AddressPlan"),
    ),
    (
        "Goals and conditions",
        (
            "ThroughputGoal",
            "Tst009Goal",
            "MlrGoals",
            "MlrGoal",
            "LossGoal",
            "DelayGoal",
            "DelayTest",
            "parse_imix",
            "Imix",
            "DrawnOrder",
            "mix_versions",
            "BackToBackGoal",
            "BurstGoal",
            "RecoveryGoal",
            "ConnectionRateGoal",
            "CapacityGoal",
            "TearDownGoal",
            "OrderName",
            "Repetitions",
            "DirectionRates",
            "Waits",
            "Limits",
            "ConnectionWish",
            "LearningChoice",
            "OnePair",
        ),
    ),
    (
        "Results",
        (
            "Throughput",
            "FrameLoss",
            "LossPoint",
            "LossOutcome",
            "DelayResult",
            "BackToBackTable",
            "BackToBack",
            "BurstSearch",
            "BurstIntervals",
            "BurstInterval",
            "Recovery",
            "ConnectionRate",
            "Capacity",
            "CapacityStep",
            "CapacityOutcome",
            "TearDown",
            "Removal",
            "ThroughputTable",
            "LossTable",
            "Row",
            "Statistics",
            "Interval",
            "SingleTrial",
            "TrialResult",
            "DirectionResult",
            "SearchTrial",
            "Purpose",
            "ThroughputResult",
            "MlrResult",
            "Profile",
            "Deviation",
            "Outcome",
            "Verdict",
        ),
    ),
    ("Events", ("Began", "Measured", "TrialStarted", "TrialFinished", "TrialPhase", "Learned", "Note")),
    ("Errors", ("EvenhandError", "RequestError", "PlanError", "HostError", "EngineError")),
)
"""In the order in which a reader needs them."""
MODULES = (
    ("evenhand.run", ("read_run", "read_record")),
    ("evenhand.analysis", ("compare",)),
    ("evenhand.analysis.trend", ("trend",)),
    ("evenhand.predict", ("predict", "smallest_even_hosts", "DeviceModel")),
)
"""What the how-to pages use in addition."""
ALIASES = ("Direction", "FrameSize", "HostMacs", "Goal", "ProcedureEvent")
SAID_ONCE = {
    "Measuring": "Each method that measures takes a `name`, by which the run file knows the search or test,"
    " and the keywords of `Conditions`.",
    "Goals and conditions": "Every goal has `invalid_retries` and `patience`, which are described at"
    " `ThroughputGoal`.",
    "Results": "Every result has `to_document()`, the document of `--json`. A result of a procedure also has"
    " `profile` (what was sent), `goal`, `trials`, `outcome`, `deviations` (where it departs from its RFC)"
    " and `summary()`.",
}
"""Words below a section's title, about members that are in ALSO and so have no entry of their own."""
ALSO = {
    "invalid_retries": "ThroughputGoal",
    "patience": "ThroughputGoal",
    "to_document": "",
    "summary": "",
    "profile": "",
    "goal": "",
    "trials": "",
    "outcome": "",
    "deviations": "",
}
"""Members that many classes have, and the one that describes each."""
DESCRIBED = {
    "TrialResult": "[A trial's result](result.md) describes the fields.",
    "DirectionResult": "[A trial's result](result.md) describes the fields.",
    "Limits": "[The limits](result.md#limits) say what each is.",
}
"""Classes whose fields another page describes; here are only their names."""
OWN = {
    "OpenTestbed": "setup engine recorder on_event replay engines run check_idle limits_of check_frames",
    "AddressPlan": "figure translation nat other is_derived label is_translated plans ip_version versions"
    " version_words smallest_frame streams stream_of four_tuples pairs_of to_contract",
    "TrialResult": "raw has_too_little_clean_time judged least_loss_ratio was_spoiled_by_a_moment",
    "DelayResult": "hardware_stamps stamps own_loop own_loop_figure pdv_resolution_ns is_complete",
    "BackToBack": "skipped residual_s is_near_maximum longest_s late_frames stopped_early",
    "Recovery": "still_losing doubtful",
    "ThroughputResult": "is_ceiling_reached highest_offered_fps",
    "MlrResult": "is_ceiling_reached highest_offered_fps losses_of sustainable_fps_of",
    "SearchTrial": "number",
    "Imix": "letters is_custom short order",
    "Profile": "host_macs macs one_pair dut vlans learning ceiling established mix"
    " traffic traffics streams address_words sent_lines vlan_lines link_line octets",
    "ThroughputGoal": "search is_max_ceiling max_trials lowest_fps",
    "Tst009Goal": "search",
    "MlrGoals": "search is_max_ceiling max_trials lowest_fps final_duration_s",
    "MlrGoal": "attributes",
    "DelayGoal": "length_s is_full_length start_s is_worst_case_maximum wish",
    "DelayTest": "procedure requirement",
    "BackToBackGoal": "max_frames frames_in after",
    "BurstGoal": "search_goal",
    "RecoveryGoal": "load",
    "ConnectionRateGoal": "search_goal trial_s longest_idle_s",
    "CapacityGoal": "rate_goal longest_idle_s",
    "TearDownGoal": "longest_idle_s",
    "BurstSearch": "max_frames is_held_back",
    "OnePair": "line ratio source dut_macs",
    "Deviation": "line",
    "ConnectionWish": "line",
}
"""Members that the package itself needs, and its users do not."""


def render() -> str:
    """The page as it should be."""
    text = HEAD
    for title, names in SECTIONS:
        text += f"\n## {title}\n"
        if title in SAID_ONCE:
            text += f"\n{SAID_ONCE[title]}\n"
        for name in names:
            text += _entry(name, getattr(evenhand, name))
    text += "\n## Types\n\n"
    for name in ALIASES:
        of = re.sub(r"\b(?:[a-z_]+\.)+", "", repr(getattr(evenhand, name)))
        text += f"- `{name}` = `{of}`\n"
    text += "\n## Stored runs and predictions\n"
    for module, functions in MODULES:
        for name in functions:
            text += _entry(f"{module}.{name}", getattr(importlib.import_module(module), name))
    return text


def _is_shown(owner: str, member: str) -> bool:
    """Whether a member has an entry: neither said once for all, nor of use to the package only."""
    if member == "longest_trial_s" or member in OWN.get(owner, "").split():
        return False
    return member not in ALSO or ALSO[member] == owner


def _entry(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return f"\n### `{name}`\n\n{_shown(name.rpartition('.')[2], thing)}\n\n{_doc(thing)}"
    text = f"\n### `{name}`\n\n{_doc(thing)}"
    rows = _fields(thing)
    if name in DESCRIBED:
        text += f"\n{DESCRIBED[name]}\n"
        names = (row.removeprefix("- `").partition(":")[0] for row in rows)
        rows = [", ".join(f"`{name}`" for name in names) + ".\n"]
    if rows:
        text += "\n" + "".join(rows)
    methods: dict[str, Any] = {}
    for one in reversed(_and_its_bases(thing)):
        methods |= {name: method for name, method in vars(one).items() if name not in methods}
    for method_name, method in methods.items():
        if method_name.startswith("_") or not _is_shown(thing.__name__, method_name):
            continue
        if not (inspect.isfunction(method) or isinstance(method, property)):
            continue
        if isinstance(method, property):
            if method.__doc__:
                text += f"\n`.{method_name}`: {_first(method)}\n"
        elif method.__doc__:
            text += f"\n{_shown(method_name, method)}\n\n{_doc(method)}"
    return text


def _shown(name: str, function: Any) -> str:
    """A signature, in a block of its own where it is folded."""
    text = _signature(name, function)
    return f"```text\n{text}\n```" if "\n" in text else f"`{text}`"


def _signature(name: str, function: Any) -> str:
    """As written in the source; folded by parameters where it is long."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    positional = [argument for argument in given.args if argument.arg != "self"]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + [*given.defaults]
    parts = [_parameter(argument, default) for argument, default in zip(positional, defaults, strict=True)]
    if given.kwonlyargs:
        parts += [
            "*",
            *(
                _parameter(argument, default)
                for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
            ),
        ]
    if given.kwarg is not None:
        parts.append(f"**{given.kwarg.arg}")
    assert definition.returns is not None
    result = ast.unparse(definition.returns)
    text = f"{name}({', '.join(parts)}) -> {result}"
    return (
        text
        if len(text) <= 110
        else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {result}"
    )


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    """Its type is in the source, and what it must be in the words below."""
    return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"


_REQUIREMENTS = re.compile(r"\s\((?:(?:SEED|R\d+|MLR|RSS)-\d+(?:, | and | \.\. |\.\.|/)?(?:\d+)?)+\)")
"""Ids of requirements, which the users of a function do not look for."""


def _doc(thing: Any) -> str:
    """A docstring as Markdown: its sections become lists."""
    blocks = _REQUIREMENTS.sub("", inspect.cleandoc(thing.__doc__ or "")).split("\n\n")
    return "\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    title, _, rest = block.partition(":\n")
    if title not in ("Args", "Raises", "Returns"):
        return " ".join(block.split()) + "\n"
    items = [
        item
        for item in re.split(r"\n(?=\S)", textwrap.dedent(rest))
        if not item.startswith("name: The name of the ")
    ]
    if title == "Returns" and ": " not in rest.partition("\n")[0]:
        return f"- returns {' '.join(rest.split())}\n"
    raises = "raises " if title == "Raises" else ""
    return "".join(
        f"- {raises}`{key}`: {' '.join(what.split())}\n"
        for key, _, what in (item.partition(": ") for item in items)
    )


def _first(thing: Any) -> str:
    text = " ".join(inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0].split())
    return _REQUIREMENTS.sub("", text)


def _and_its_bases(thing: type) -> list[type]:
    """The class itself, after those of its bases that have no entry of their own."""
    if issubclass(thing, BaseException):
        return [thing]
    hidden = [
        base
        for base in thing.__mro__[1:]
        if base.__module__.startswith("evenhand.") and base.__name__ not in evenhand.__all__
    ]
    return [*reversed(hidden), thing]


def _fields(thing: type) -> list[str]:
    """An item for each attribute, with the docstring below it in the source."""
    if issubclass(thing, BaseException):
        return []
    return [
        row
        for one in _and_its_bases(thing)
        for name, row in _own_fields(one)
        if issubclass(thing, Enum) or _is_shown(thing.__name__, name)
    ]


def _default_of(value: ast.expr | None) -> ast.expr | None:
    """The default of a field, also of one whose key in documents is another than its name."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "at_key":
        return value.args[1] if len(value.args) > 1 else None
    return value


def _own_fields(thing: type) -> list[tuple[str, str]]:
    body = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    assert isinstance(body, ast.ClassDef)
    rows = []
    for statement, following in zip(body.body, [*body.body[1:], None], strict=True):
        what = ""
        if (
            isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            what = f": {_REQUIREMENTS.sub('', ' '.join(following.value.value.split()))}"
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and not statement.target.id.startswith("_")
        ):
            value = _default_of(statement.value)
            default = "" if value is None else f" = {ast.unparse(value)}"
            default = default.replace(" = None", "")
            shown = f"{statement.target.id}: {ast.unparse(statement.annotation)}{default}"
            rows.append((statement.target.id, f"- `{shown}`{what}\n"))
        elif issubclass(thing, Enum) and isinstance(statement, ast.Assign):
            rows.append(("", f"- `{ast.unparse(statement.value)}`{what}\n"))
    return rows


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
