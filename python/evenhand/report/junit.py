# SPDX-License-Identifier: Apache-2.0
"""Station 10: a run's test cases as JUnit XML, as Jenkins, GitLab and most others read it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from evenhand.base.visible import visible, visible_lines
from evenhand.report.cases import Case, CaseOutcome, Cases

CLASS = "evenhand"
"""Begins the class name of each case, by which readers group them."""
_ELEMENT = {CaseOutcome.FAILED: "failure", CaseOutcome.ERROR: "error"}
_NOT_XML = re.compile("[^\\t\\n\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML 1.0 cannot have, not even escaped."""


def to_junit(cases: Cases) -> str:
    """One `testsuites` with a `testsuite` for each suite of the run. What holds for the whole run is in the
    properties of each, and in `system-out` of the first: readers show one or the other."""
    root = ElementTree.Element("testsuites", _counts(cases.cases) | {"name": _text(cases.name)})
    suites: dict[str, list[Case]] = {}
    for case in cases.cases:
        suites.setdefault(case.suite, []).append(case)
    for suite, members in suites.items() or [(cases.name, [])]:
        head = {"name": _text(suite), "timestamp": cases.started_at.removesuffix("Z")[:19]}
        element = ElementTree.SubElement(root, "testsuite", head | _counts(members))
        properties = ElementTree.SubElement(element, "properties")
        for name, value in cases.facts:
            ElementTree.SubElement(properties, "property", {"name": _text(name), "value": _text(value)})
        for case in members:
            _add_case(element, case)
        if element is root[0]:
            _add_lines(element, tuple(f"{name}: {value}" for name, value in cases.facts))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counts(cases: list[Case] | tuple[Case, ...]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome is CaseOutcome.FAILED for case in cases)),
        "errors": str(sum(case.outcome is CaseOutcome.ERROR for case in cases)),
        "skipped": "0",
        "time": f"{sum(case.duration_s for case in cases):.3f}",
    }


def _add_case(suite: ElementTree.Element, case: Case) -> None:
    # A full stop divides packages for readers.
    group = f"{CLASS}.{_text(case.suite).replace('.', '_')}"
    attributes = {"name": _text(case.name), "classname": group, "time": f"{case.duration_s:.3f}"}
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case.outcome is not CaseOutcome.PASSED:
        why = {"message": _text(case.message), "type": case.kind}
        found = ElementTree.SubElement(element, _ELEMENT[case.outcome], why)
        found.text = _text(case.message)
    _add_lines(element, case.lines)


def _add_lines(element: ElementTree.Element, lines: tuple[str, ...]) -> None:
    if lines:
        out = ElementTree.SubElement(element, "system-out")
        out.text = "\n".join(_NOT_XML.sub("?", visible_lines(line)) for line in lines)


def _text(text: str) -> str:
    return _NOT_XML.sub("?", visible(text))
