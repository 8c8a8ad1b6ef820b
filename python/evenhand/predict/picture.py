# SPDX-License-Identifier: Apache-2.0
"""A series as a picture: share of the plateau over the number of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenhand.errors import HostError, RequestError
from evenhand.predict.loads import Prediction
from evenhand.predict.text import describe_model, hosts_title
from evenhand.units import format_count

FORMATS = (".svg", ".png", ".pdf")
INCHES = (8.0, 4.5)


def check_picture_name(path: Path) -> None:
    """Before anything is computed. RequestError if the ending is none of `FORMATS`."""
    if path.suffix.lower() not in FORMATS:
        raise RequestError(
            f"{str(path)!r} does not end in {', '.join(FORMATS)}", where="--picture", next_step="Name a file such as series.svg."
        )


def draw_series(series: Sequence[Prediction], smallest_even: int | None, path: Path) -> None:
    """Write the picture.

    Raises:
        HostError: The file cannot be written.
    """
    # matplotlib takes most of a second to import: only who wants a picture waits for it. Without pyplot nothing looks for a display.
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    hosts = [point.plan.left.hosts.count for point in series]
    plan, model = series[-1].plan, series[-1].model
    figure = Figure(figsize=INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log", base=2)
    axes.plot(hosts, [100 * float(point.share_of_plateau) for point in series], marker="o", color="#1f5fa8", zorder=3)
    axes.axhline(100, color="#555555", linestyle="--", linewidth=1, zorder=1)
    axes.annotate("plateau: all elements alike", (1, 100), xytext=(0, 4), textcoords="offset points", fontsize=9, color="#555555")
    if model.table_unevenness > 1:
        best = 100 / float(model.table_unevenness)
        axes.axhline(best, color="#b06000", linestyle="--", linewidth=1, zorder=1)
        axes.annotate(
            f"best that the table allows: {best:.1f} %", (hosts[-1], best), xytext=(0, -16), textcoords="offset points",
            fontsize=9, color="#b06000", horizontalalignment="right",
        )  # fmt: skip
    if smallest_even is not None and smallest_even > 1:
        axes.axvline(smallest_even, color="#2e7d32", linestyle=":", linewidth=1.2, zorder=1)
        axes.annotate(
            f"even from {format_count(smallest_even)} on", (smallest_even, 4), xytext=(5, 0), textcoords="offset points",
            fontsize=9, color="#2e7d32",
        )  # fmt: skip
    axes.set_ylim(0, 112)
    axes.set_yticks(range(0, 101, 20))
    # The largest IPv4 plans end at 65,533 or 65,534: the tick for 64k stands for them.
    axes.set_xticks([2**exponent for exponent in range(17) if 2**exponent <= hosts[-1] + 3])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(int(value))))
    axes.set_xlabel(hosts_title(plan))
    axes.set_ylabel("share of the plateau (%)")
    directions = "both directions" if len(series[-1].directions) == 2 else f"{series[-1].directions[0]} direction"
    axes.set_title(f"{plan.title}, {directions}\n{describe_model(model)}", fontsize=10, loc="left")
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise HostError(f"this file cannot be written: {error.strerror}", where=str(path), next_step="Name another file.") from error


def _short(hosts: int) -> str:
    return f"{hosts // 1024}k" if hosts >= 1024 else str(hosts)
