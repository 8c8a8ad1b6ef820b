# SPDX-License-Identifier: Apache-2.0
"""Station 10: pictures of what a witness saw inside the DUT: its CPUs over a series, and its queues next to
what was predicted of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.analysis.inside import SeenCpu, SeenQueues
from evenhand.report.figures import LIGHT, Picture, PictureShape, put_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 48
"""CPUs of a heat map: the busiest."""
IDLE = 0.02
"""A CPU that was never busier has no row where there are many."""
SOME_ROWS = 8
UNEVEN = 1.1
"""Busiest to mean, from which on the busiest CPU of a point is marked: among equals any of them is."""
FULL = 0.9
"""How solid the colour of a busy CPU is."""
PALEST = 0.05
"""Makes an idle CPU visible."""
FEWEST_COLUMNS = 8
"""A cell is at most as wide as with this number of columns."""
DARK_FROM = 0.62
"""From this share on, a figure has the colour of the paper."""
MOST_NUMBERS = {"wide": 20, "narrow": 7}
"""Columns whose cells have room for a figure."""
MOST_LABELS = {"wide": 20, "narrow": 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatColumn:
    """One point of a series."""

    label: str
    cpus: tuple[SeenCpu, ...]


def heat_picture(name: str, title: str, columns: Sequence[HeatColumn], *, over: str) -> Picture:
    """CPUs of the DUT by points of a series: the darker, the busier.

    Args:
        over: What the labels of the columns count.
    """
    rows = _rows(columns)

    def draw(axes: Axes, shape: PictureShape) -> None:
        from matplotlib.patches import Patch, Rectangle

        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        has_numbers = len(columns) <= MOST_NUMBERS[shape.name]
        for x, column in enumerate(columns):
            known = {cpu.cpu: cpu for cpu in column.cpus}
            busiest = max(column.cpus, key=lambda cpu: cpu.busy)
            is_uneven = busiest.busy * len(column.cpus) > UNEVEN * sum(cpu.busy for cpu in column.cpus)
            for y, number in enumerate(rows):
                cpu = known.get(number)
                if cpu is None:
                    continue
                solid = FULL * max(cpu.busy, PALEST)
                axes.add_patch(
                    Rectangle(
                        (x - 0.47, y - 0.46),
                        0.94,
                        0.92,
                        facecolor=LIGHT["c1"],
                        alpha=solid,
                        linewidth=0,
                        zorder=2,
                    )
                )
                ink = LIGHT["paper"] if cpu.busy >= DARK_FROM else LIGHT["ink"]
                if has_numbers:
                    axes.text(
                        x,
                        y,
                        f"{100 * cpu.busy:.0f}",
                        ha="center",
                        va="center",
                        fontsize=9,
                        color=ink,
                        zorder=4,
                    )
                if cpu.softirq >= IDLE:
                    axes.plot(
                        [x - 0.4, x - 0.4 + 0.8 * cpu.softirq],
                        [y + 0.36] * 2,
                        color=ink,
                        linewidth=1.6,
                        solid_capstyle="butt",
                        zorder=4,
                    )
                if number == busiest.cpu and is_uneven:
                    axes.add_patch(
                        Rectangle(
                            (x - 0.47, y - 0.46),
                            0.94,
                            0.92,
                            fill=False,
                            edgecolor=LIGHT["c2"],
                            linewidth=1.8,
                            zorder=5,
                        )
                    )
        axes.set_xlim(-0.55, max(len(columns), FEWEST_COLUMNS) - 0.45)
        axes.set_ylim(len(rows) - 0.45, -0.55)
        axes.set_yticks(range(len(rows)), [f"CPU {number}" for number in rows])
        step = -(-len(columns) // MOST_LABELS[shape.name])
        shown = range(len(columns) - 1, -1, -step)
        axes.set_xticks(list(shown), [columns[x].label for x in shown])
        axes.set_xlabel(over, loc="left")
        put_title(axes, "busy, % of the time of sending")
        scale = [
            Patch(facecolor=LIGHT["c1"], alpha=FULL * share, label=f"{100 * share:.0f} %")
            for share in (0.25, 0.5, 0.75, 1.0)
        ]
        scale.append(
            Patch(fill=False, edgecolor=LIGHT["c2"], linewidth=1.8, label="the busiest, if they differ")
        )
        axes.figure.legend(
            handles=scale,
            loc="outside lower left",
            ncols=2 if shape.is_narrow else 5,
            frameon=False,
            fontsize=9,
            labelcolor=LIGHT["ink"],
            handlelength=1.4,
            borderaxespad=0.2,
        )

    said = " ".join(_describe(column) for column in columns)
    left_out = len({cpu.cpu for column in columns for cpu in column.cpus}) - len(rows)
    more = f" {left_out} CPUs with less load are omitted." if left_out else ""
    return Picture(
        name=name,
        title=title,
        alt=f"{title}. {said}",
        draw=draw,
        inches=1.35 + 0.29 * len(rows),
        caption="What the DUT itself counted in the trial at each point's result, averaged"
        " over the repetitions. The line in a cell is the share of the time spent"
        f" in softirqs, in which a kernel forwards.{more}",
    )


def queues_picture(name: str, title: str, queues: Sequence[SeenQueues]) -> Picture:
    """Predicted next to counted, for each queue of each interface."""

    def draw(axes: Axes, shape: PictureShape) -> None:
        start, ticks, labels = 0, [], []
        for number, seen in enumerate(queues):
            places = [start + queue for queue in range(len(seen.counted))]
            axes.bar(
                places,
                [100 * share for share in seen.shares],
                width=0.78,
                color=LIGHT["c1"],
                alpha=0.75,
                linewidth=0,
                label="counted by the DUT" if number == 0 else None,
                zorder=3,
            )
            if seen.predicted is not None:
                axes.hlines(
                    [100 * share for share in seen.predicted],
                    [x - 0.46 for x in places],
                    [x + 0.46 for x in places],
                    color=LIGHT["c2"],
                    linewidth=2.4,
                    label="predicted" if number == 0 else "",
                    zorder=4,
                )
            step = max(1, -(-len(places) * len(queues) // (8 if shape.is_narrow else 32)))
            ticks += places[::step]
            labels += [str(queue) for queue in range(0, len(places), step)]
            axes.text(
                (places[0] + places[-1]) / 2,
                1.0,
                f"{seen.interface}, {seen.direction}",
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="bottom",
                fontsize=9,
                color=LIGHT["soft"],
            )
            start = places[-1] + 2
        axes.set_xticks(ticks, labels)
        axes.grid(visible=False, axis="x")
        highest = max(max(*seen.shares, *(seen.predicted or ())) for seen in queues)
        axes.set_ylim(0, 112 * highest)
        axes.set_xlim(-0.8, start - 1.2)
        axes.set_xlabel("receive queue")
        axes.set_title("share of the packets, %", loc="left", fontsize=9, color=LIGHT["ink"], pad=22)
        handles, _ = axes.get_legend_handles_labels()
        if handles:
            axes.figure.legend(
                loc="outside lower left",
                ncols=2,
                frameon=False,
                fontsize=9,
                labelcolor=LIGHT["ink"],
                handlelength=1.4,
                borderaxespad=0.2,
            )

    said = " ".join(
        f"{seen.interface}, {seen.direction}: the busiest queue got {100 * max(seen.shares):.1f} %"
        + ("." if seen.predicted is None else f", and {100 * max(seen.predicted):.1f} % was predicted.")
        for seen in queues
    )
    return Picture(
        name=name,
        title=title,
        alt=f"{title}. {said}",
        draw=draw,
        caption="Counted: all packets that a queue received in the trials at the point's result."
        " Predicted: from the DUT's own key, table and hash fields as read before, with all"
        " combinations of addresses and ports equally frequent.",
    )


def _rows(columns: Sequence[HeatColumn]) -> list[int]:
    """CPUs in order; of many those that did anything, and of very many the busiest."""
    highest: dict[int, float] = {}
    for column in columns:
        for cpu in column.cpus:
            highest[cpu.cpu] = max(highest.get(cpu.cpu, 0.0), cpu.busy)
    if len(highest) > SOME_ROWS:
        highest = {number: busy for number, busy in highest.items() if busy >= IDLE} or highest
    return sorted(sorted(highest, key=lambda number: -highest[number])[:MOST_ROWS])


def _describe(column: HeatColumn) -> str:
    busiest = max(column.cpus, key=lambda cpu: cpu.busy)
    working = sum(cpu.busy >= busiest.busy / 2 for cpu in column.cpus) if busiest.busy > 0 else 0
    return (
        f"{column.label}: CPU {busiest.cpu} was the busiest with {100 * busiest.busy:.0f} %;"
        f" {working} worked at least half as much."
    )
