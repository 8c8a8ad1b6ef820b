# SPDX-License-Identifier: Apache-2.0
"""Station 10: the demo's page. One static file, no network: the picture is inside as SVG."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.analysis.condition_words import show_percent
from evenhand.analysis.ratios import SAME_WITHIN
from evenhand.base.new_file import write_new
from evenhand.base.table import Cell, Table, make_table, measured
from evenhand.base.units import WHOLE_FPS, format_rate
from evenhand.report.bias import BiasCase, bias_entries, bias_lines, bias_verdict
from evenhand.report.figures import Picture
from evenhand.report.figures_bias import Bar, bars_picture
from evenhand.report.page import render, show_picture
from evenhand.report.page_facts import ShownDeviation
from evenhand.report.page_words import DASH, show_time
from evenhand.report.suite import suite_deviations
from evenhand.trial import Verdict

TEMPLATE = "demo.html.j2"


def write_bias_page(
    cases: Sequence[BiasCase],
    path: Path,
    *,
    host: Mapping[str, Any],
    versions: Mapping[str, str],
    command: Sequence[str],
    run: Path | None,
) -> None:
    """Write the page.

    Args:
        command: As typed.
        run: The file with every trial; None if nothing is stored.

    Raises:
        RequestError: There is a file of this name.
        HostError: The file cannot be written.
    """
    text = render(
        TEMPLATE,
        verdict=[
            (line, "bad" if line.startswith("Biased") or "not equal" in line else "good")
            for line in bias_verdict(cases)
        ],
        picture=show_picture(bias_bars(cases)),
        table=_table(cases),
        model=cases[0].prediction.model.to_document(),
        element_rate=format_rate(cases[0].prediction.model.rate_fps or 0),
        notes=[
            line
            for line in bias_lines(cases)[len(bias_verdict(cases)) + 2 :]
            if not line.startswith("Deviation")
        ],
        found_deviations=[
            ShownDeviation(requirement=d.requirement, text=d.text, where="")
            for d in suite_deviations(bias_entries(cases))
        ],
        trace=_trace(cases, command, run, versions),
        host=host,
        versions=versions,
    )
    write_new(path, text.encode(), where=str(path))


def bias_bars(cases: Sequence[BiasCase]) -> Picture:
    """The picture of the page and of the README."""
    plateau_fps = max(case.plateau_fps for case in cases)
    return bars_picture(
        [
            Bar(
                hashes=case.hash_fields,
                address_words=case.address_words,
                found_fps=case.found_fps,
                passed_fps=case.passed_fps,
                share=case.share,
                predicted_fps=case.predicted_fps,
                is_even=(case.share or 0) >= 1 - SAME_WITHIN,
            )
            for case in cases
        ],
        plateau_fps,
    )


def _trace(
    cases: Sequence[BiasCase], command: Sequence[str], run: Path | None, versions: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What leads from the page to its run, and to another like it."""
    trials = [trial.result for case in cases for trial in case.result.trials]
    begun, last = (show_time(trials[end].started_at) for end in (0, -1)) if trials else ("-", "-")
    profile = cases[0].profile
    return [
        ("measured", f"{begun} {DASH} {last}"),
        ("command", shlex.join(command)),
        ("run file", "none: the run is not stored" if run is None else run.name),
        ("plan", profile.plan.label),
        ("frames", f"{profile.protocol}, {profile.frame_size} octets with FCS, both directions"),
        ("seed", str(profile.seed)),
        *((f"version of {name.replace('_', ' ')}", value) for name, value in versions.items()),
    ]


def _table(cases: Sequence[BiasCase]) -> Table:
    titles = [
        "the router hashes",
        "the tester sends",
        "#found",
        "#predicted",
        "#difference, %",
        "#share of plateau, %",
        "#elements at work",
        "#trials P / F / I",
    ]
    rows: list[list[str | Cell]] = [
        [
            case.hash_fields,
            case.address_words,
            case.found_cell(WHOLE_FPS),
            measured(case.predicted_fps, WHOLE_FPS),
            "-" if case.error is None else f"{100 * case.error:+.2f}",
            "-" if case.share is None else show_percent(case.share).removesuffix(" %"),
            f"{case.elements_at_work} of {case.prediction.model.elements}",
            " / ".join(str(case.result.count(verdict)) for verdict in Verdict),
        ]
        for case in cases
    ]
    return make_table(titles, rows, caption="Rates are per direction.")
