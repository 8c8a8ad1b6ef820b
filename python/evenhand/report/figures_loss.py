# SPDX-License-Identifier: Apache-2.0
"""Station 10: the picture of loss over load. It gets numbers and labels, and knows nothing of campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.procedure.statistics import Statistics
from evenhand.report.figures import Picture, PictureShape, put_legend, put_title, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss over the load: one line for each repetition, as pairs of load and loss in percent."""

    label: str
    repetitions: tuple[tuple[tuple[float, float], ...], ...]

    def medians(self) -> list[tuple[float, float]]:
        """Medians by load, in ascending order."""
        losses: dict[float, list[float]] = {}
        for repetition in self.repetitions:
            for load, loss in repetition:
                losses.setdefault(round(load, 6), []).append(loss)
        found = [(load, Statistics.of(values)) for load, values in sorted(losses.items())]
        return [(load, statistics.median) for load, statistics in found if statistics is not None]


def loss_picture(name: str, title: str, curves: Sequence[LossCurve], *, of: str) -> Picture:
    """Frame loss rate over the load, both axes from 0 to 100 % (R2544-28).

    Args:
        of: What 100 % of the load is, such as `theoretical maximum`.
    """

    def draw(axes: Axes, shape: PictureShape) -> None:
        for number, curve in enumerate(curves):
            look = style(number)
            for repetition in curve.repetitions:
                axes.plot(
                    *zip(*sorted(repetition), strict=True),
                    color=look["color"],
                    linewidth=0.8,
                    alpha=0.3,
                    zorder=2,
                )
            axes.plot(
                *zip(*curve.medians(), strict=True),
                **look,
                linewidth=1.8,
                markersize=4.5,
                label=curve.label,
                zorder=3,
            )
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        ticks = range(0, 101, 20)
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.set_xlabel(f"offered load, % of the {of}")
        put_title(axes, "frames lost, %")
        put_legend(axes, shape)

    highest = [max(curve.medians()) for curve in curves]
    said = " ".join(
        f"{curve.label}: {loss:.3g} % lost at {load:.3g} % load."
        for curve, (load, loss) in zip(curves, highest, strict=True)
    )
    caption = f"Line: median of the repetitions; faint lines: each of them. 100 % of the load is the {of}."
    return Picture(
        name=name, title=title, alt=f"{title}: loss over the load. {said}", caption=caption, draw=draw
    )
