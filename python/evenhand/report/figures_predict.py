# SPDX-License-Identifier: Apache-2.0
"""Station 10: a predicted series as a picture: share of the plateau over the number of hosts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.base.errors import RequestError
from evenhand.base.new_file import unwritable
from evenhand.base.units import format_count
from evenhand.predict.loads import Prediction
from evenhand.predict.text import describe_model, hosts_title
from evenhand.report.figures import (
    LIGHT,
    Picture,
    PictureShape,
    put_ticks_of_counts,
    put_title,
    save_picture,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png", ".pdf")


def check_picture_name(path: Path) -> None:
    """Before anything is computed. RequestError if the ending is none of `FORMATS`."""
    if path.suffix.lower() not in FORMATS:
        raise RequestError(
            f"{str(path)!r} does not end in {', '.join(FORMATS)}",
            code="report.not-a-picture-format",
            where="--picture",
            next_step="Name a file such as series.svg.",
        )


def draw_series(series: Sequence[Prediction], smallest_even: int | None, path: Path) -> None:
    """Write the picture.

    Raises:
        HostError: The file cannot be written.
    """
    picture, is_new = series_picture(series, smallest_even), not os.path.lexists(path)
    try:
        save_picture(picture, path)
    except OSError as error:
        if is_new:  # a full disk leaves no half of one
            path.unlink(missing_ok=True)
        raise unwritable(str(path), error) from error


def series_picture(series: Sequence[Prediction], smallest_even: int | None) -> Picture:
    """The picture, in the style of all pictures."""
    plan, model = series[-1].plan, series[-1].model
    directions = (
        "both directions" if len(series[-1].directions) == 2 else f"{series[-1].directions[0]} direction"
    )

    def draw(axes: Axes, shape: PictureShape) -> None:
        host_counts = [point.plan.left.host_range.count for point in series]
        axes.set_xscale("log", base=2)
        axes.plot(
            host_counts,
            [100 * float(point.share_of_plateau) for point in series],
            **style(0),
            linewidth=1.8,
            markersize=5,
            zorder=3,
        )
        axes.axhline(100, color=LIGHT["soft"], linestyle=(0, (6, 2)), linewidth=1, zorder=1)
        axes.annotate(
            "plateau: equal load on all elements",
            (1, 100),
            xytext=(0, 4),
            textcoords="offset points",
            color=LIGHT["soft"],
        )
        if model.table_unevenness > 1:
            best = 100 / float(model.table_unevenness)
            axes.axhline(best, color=LIGHT["c2"], linestyle=(0, (2, 1.5)), linewidth=1, zorder=1)
            axes.annotate(
                f"best that the table allows: {best:.1f} %",
                (host_counts[-1], best),
                xytext=(0, -14),
                textcoords="offset points",
                color=LIGHT["c2"],
                horizontalalignment="right",
            )
        if smallest_even is not None and smallest_even > 1:
            axes.axvline(smallest_even, color=LIGHT["good"], linestyle=":", linewidth=1.4, zorder=1)
            axes.annotate(
                f"even from {format_count(smallest_even)} on",
                (smallest_even, 4),
                xytext=(5, 0),
                textcoords="offset points",
                color=LIGHT["good"],
            )
        put_ticks_of_counts(axes, shape, host_counts)
        axes.set_ylim(0, 112)
        axes.set_yticks(range(0, 101, 20))
        axes.set_xlabel(hosts_title(plan))
        put_title(axes, f"share of the plateau, %: {plan.title}, {directions}\n{describe_model(model)}")

    ends = (
        f"{100 * float(series[0].share_of_plateau):.1f} % to {100 * float(series[-1].share_of_plateau):.1f} %"
    )
    return Picture(
        name="series",
        title=plan.title,
        alt=f"Share of the plateau over the number of hosts: {ends}.",
        caption="",
        draw=draw,
    )
