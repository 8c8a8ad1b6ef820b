# SPDX-License-Identifier: Apache-2.0
"""Station 10: the demo's page. One static file, no network: the picture is inside as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from evenhand.new_file import write_new
from evenhand.report.bias import SAME_WITHIN, BiasCase, bias_entries, bias_lines, bias_verdict, format_percent
from evenhand.report.suite import suite_deviations
from evenhand.trial import Verdict
from evenhand.units import format_count, format_rate

TEMPLATE = "bias.html.j2"
GOOD, BAD, INK, FAINT = "#2e7d57", "#c0533e", "#1d2430", "#d9dde3"


def write_bias_page(cases: Sequence[BiasCase], path: Path, *, host: dict[str, Any], versions: dict[str, str]) -> None:
    """Write the page.

    Raises:
        RequestError: There is a file of this name.
        HostError: The file cannot be written.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("evenhand.report", "templates"), autoescape=select_autoescape(default=True), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    text = environment.get_template(TEMPLATE).render(
        verdict=[(line, "bad" if line.startswith("Biased") or "not equal" in line else "good") for line in bias_verdict(cases)],
        picture=draw_bias(cases),
        rows=[_row(case) for case in cases],
        model=cases[0].prediction.model.to_document(),
        element_rate=format_rate(cases[0].prediction.model.rate_fps or 0),
        notes=[line for line in bias_lines(cases)[len(bias_verdict(cases)) + 2 :] if not line.startswith("Deviation")],
        deviations=suite_deviations(bias_entries(cases)),
        host=host,
        versions=versions,
    )
    write_new(path, text.encode(), where=str(path))


def draw_bias(cases: Sequence[BiasCase]) -> str:
    """Bars of what was found, with a mark where the prediction is, and a line for the plateau; an SVG element."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Text stays text, so that the page's own font is used and the picture can be searched.
    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "evenhand"}):
        figure = Figure(figsize=(8.4, 0.5 + 0.78 * len(cases)), layout="constrained")
        axes = figure.add_subplot()
        plateau_kfps = max(case.plateau_fps for case in cases) / 1e3
        for row, case in enumerate(cases):
            found_kfps = (case.found_fps or 0) / 1e3
            is_even = found_kfps >= (1 - SAME_WITHIN) * case.plateau_fps / 1e3
            axes.barh(row, found_kfps, height=0.52, color=GOOD if is_even else BAD, zorder=2)
            axes.plot([case.predicted_fps / 1e3] * 2, [row - 0.36, row + 0.36], color=INK, linewidth=2, zorder=3)
            share = (
                "no number"
                if case.found_fps is None
                else f"{format_rate(case.found_fps)}  ({format_percent(case.found_fps / case.plateau_fps)})"
            )
            inside = found_kfps > plateau_kfps / 2
            axes.annotate(
                share, (found_kfps, row), xytext=(-8 if inside else 8, 0), textcoords="offset points", va="center",
                ha="right" if inside else "left", color="white" if inside else INK, fontsize=10, fontweight="bold", zorder=4,
            )  # fmt: skip
        axes.axvline(plateau_kfps, color=INK, linestyle=(0, (4, 3)), linewidth=1, zorder=1)
        axes.set_yticks(range(len(cases)), [f"hashes {case.hash_fields}:\n{case.addresses}" for case in cases], fontsize=9.5)
        axes.invert_yaxis()
        axes.set_xlim(0, plateau_kfps * 1.06)
        axes.set_xlabel("throughput per direction, kfps     (black mark: predicted; dashed: all elements fully at work)", fontsize=9)
        axes.grid(axis="x", color=FAINT, linewidth=0.7, zorder=0)
        axes.tick_params(length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        svg = StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = svg.getvalue()
    return text[text.index("<svg") :]


def _row(case: BiasCase) -> dict[str, str]:
    return {
        "hash": case.hash_fields,
        "addresses": case.addresses,
        "elements": f"{case.elements_at_work} of {case.prediction.model.elements}",
        "found": "-" if case.found_fps is None else format_count(case.found_fps),
        "predicted": format_count(round(case.predicted_fps)),
        "error": "-" if case.error is None else f"{100 * case.error:+.2f} %",
        "share": "-" if case.found_fps is None else format_percent(case.found_fps / case.plateau_fps),
        "trials": " / ".join(str(case.result.count(verdict)) for verdict in Verdict),
        "outcome": str(case.result.outcome).replace("_", " "),
    }
