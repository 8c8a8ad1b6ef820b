# SPDX-License-Identifier: Apache-2.0
"""Station 10: one look for all pictures. A picture is drawn by matplotlib and comes out as SVG for a page, or
as an SVG or PNG file.

Colours have names. In a page they are CSS variables, so that a picture follows the page into dark mode; in a
file they are plain colours. Lines differ in colour, lightness, dash and marker: none of them is distinguished
by its hue alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHT = {
    "ink": "#1b2330",
    "soft": "#596474",
    "grid": "#d8dde4",
    "paper": "#fefefe",
    "c1": "#0a5ca8",
    "c2": "#b8470c",
    "c3": "#0b7a5f",
    "c4": "#7d3c9b",
    "good": "#237a4e",
    "bad": "#b9402b",
}
"""Colours by name; the contrast of each against paper is above 4.5. No two are equal, since each represents
its name in an SVG."""
DARK = {
    "ink": "#e7ebf1",
    "soft": "#a3aebd",
    "grid": "#384252",
    "paper": "#171c24",
    "c1": "#6db3f8",
    "c2": "#ff9a5a",
    "c3": "#45d3ab",
    "c4": "#d49bf0",
    "good": "#57c98c",
    "bad": "#ff8a73",
}
MARKERS = "osD^"
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (2, 1.5)))


@dataclass(frozen=True, slots=True)
class PictureShape:
    """How large a picture is, and whether it has the room of a desk or of a phone."""

    name: str
    width: float
    """Inches of 72 points; text is 9 points in all shapes."""
    height: float

    @property
    def is_narrow(self) -> bool:
        return self.name == "narrow"


WIDE = PictureShape("wide", 8.6, 4.3)
NARROW = PictureShape("narrow", 4.1, 3.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Something to draw: its name becomes that of files, its `alt` is what it shows in words."""

    name: str
    """Letters, digits and hyphens, unique on its page."""
    title: str
    alt: str
    caption: str
    draw: Callable[[Axes, PictureShape], None]
    row_count: int | None = None
    """Number of rows of bars; None for a picture whose height does not depend on what it shows."""
    inches: float | None = None
    """The height itself, in any shape."""

    def size(self, shape: PictureShape) -> tuple[float, float]:
        if self.inches is not None:
            return (shape.width, self.inches + (0.3 if shape.is_narrow else 0.0))
        return (
            shape.width,
            shape.height
            if self.row_count is None
            else 0.65 + (0.95 if shape.is_narrow else 0.72) * self.row_count,
        )


def style(number: int) -> dict[str, Any]:
    """Colour, marker and dash of the curve with this number, from 0; after four curves they begin again."""
    which = number % len(MARKERS)
    return {"color": LIGHT[f"c{which + 1}"], "marker": MARKERS[which], "linestyle": DASHES[which]}


def draw_inline(picture: Picture) -> str:
    """SVG elements for a page, one for wide and one for narrow screens; the page's CSS shows one of them."""
    return "".join(
        f'<div class="shape-{shape.name}">'
        f"{_svg(picture, shape, in_page=True, prefix=f'{picture.name}-{shape.name}')}</div>"
        for shape in (WIDE, NARROW)
    )


def draw_svg_file(picture: Picture, *, follows_theme: bool = False) -> bytes:
    """A file of its own, with white paper.

    Args:
        follows_theme: In a reader's dark mode it is dark. Browsers only: other programs know no CSS
            variables.
    """
    text = _svg(picture, WIDE, in_page=follows_theme, prefix=picture.name)
    inserted = f"<!-- Evenhand: {picture.name} -->"
    if follows_theme:
        light, dark = (
            "".join(f"--{name}:{colour};" for name, colour in colours.items()) for colours in (LIGHT, DARK)
        )
        inserted += f"<style>svg{{{light}background:var(--paper)}}"
        inserted += f"@media(prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    else:
        inserted += f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
    head, end, rest = text.partition(">")
    return (f'<?xml version="1.0" encoding="utf-8"?>\n{head}{end}{inserted}{rest}\n').encode()


def draw_png_file(picture: Picture) -> bytes:
    """A file of 1,720 pixels in width, with white paper."""
    return _saved(
        picture, WIDE, format="png", dpi=200, facecolor=LIGHT["paper"], metadata={"Software": "Evenhand"}
    )


def bare_axes(axes: Axes) -> None:
    """What all have in common: a faint grid below, and no frame."""
    axes.grid(visible=True, color=LIGHT["grid"], linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=LIGHT["soft"])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LIGHT["soft"])
    axes.xaxis.label.set_color(LIGHT["ink"])
    axes.yaxis.label.set_color(LIGHT["ink"])


def put_title(axes: Axes, text: str) -> None:
    """What the y axis shows, above it and level: easier to read than a label on its side, and takes no
    width."""
    axes.set_title(text, loc="left", fontsize=9, color=LIGHT["ink"], pad=8)


LONGEST_OF_TWO = 50
"""Letters of the longest label of a legend in two columns; a longer one would be cut at the edge."""


LONGEST_LABEL = {"wide": 110, "narrow": 46}
"""Letters of a line of the legend, by the picture's shape: more would be cut at the edge."""


def put_legend(axes: Axes, shape: PictureShape, *, least: int = 2) -> None:
    """Put the legend below the picture, where it hides nothing; none for fewer entries than `least`, by
    default for one curve alone. What is too long for the picture is broken into lines."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) < least:
        return
    is_single = shape.is_narrow or max(map(len, labels)) > LONGEST_OF_TWO
    width = LONGEST_LABEL[shape.name]
    axes.figure.legend(
        handles,
        ["\n".join(wrap(label, width)) if len(label) > width else label for label in labels],
        loc="outside lower left",
        ncols=1 if is_single else 2,
        frameon=False,
        fontsize=9,
        labelcolor=LIGHT["ink"],
        handlelength=2.6,
        borderaxespad=0.2,
    )


def put_ticks_of_counts(
    axes: Axes, shape: PictureShape, counts: Sequence[float], *, leftmost: float = 1.0
) -> None:
    """Powers of two, far enough from each other for the labels; the largest IPv4 plans end just below 64k,
    which represents them.

    Args:
        leftmost: Where the first point is drawn, which may be next to its count.
    """
    from matplotlib.ticker import FuncFormatter, NullLocator

    last = max(counts, default=1)
    powers = [2**exponent for exponent in range(33) if 2**exponent <= last + 3]
    steps = max(1, -(-len(powers) // (6 if shape.is_narrow else 17)))
    axes.set_xticks(powers[::-1][::steps][::-1])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(round(value))))
    axes.set_xlim(min(0.75, 0.8 * leftmost), max(last, 2) * 1.35)


def short_count(number: int) -> str:
    """4096 -> 4k."""
    return f"{number // 1024}k" if number >= 1024 and number % 1024 == 0 else str(number)


def save_picture(picture: Picture, path: Path) -> None:
    """One file, by its ending: .svg, .png or .pdf. OSError if it cannot be written."""
    match path.suffix.lower():
        case ".svg":
            path.write_bytes(draw_svg_file(picture))
        case ".png":
            path.write_bytes(draw_png_file(picture))
        case _:
            path.write_bytes(_saved(picture, WIDE, format=path.suffix[1:], facecolor=LIGHT["paper"]))


NOT_DRAWN = "This picture could not be drawn"
"""Beginning of what a picture says that its numbers, or a mistake of ours, have made impossible."""
NO_POINTS = "There is no value to draw."
WITHOUT_POINTS_INCHES = 1.2
"""Height of a picture that only says so."""


def not_drawn(name: str, title: str, error: Exception) -> Picture:
    """In place of a picture that could not be drawn: everything else on its page can still be read."""
    said = f"{NOT_DRAWN}, because of a bug in Evenhand: {type(error).__name__}. Please report it."

    def draw(axes: Axes, shape: PictureShape) -> None:
        put_words(axes, f"{NOT_DRAWN}.")

    return Picture(
        name=name, title=title, alt=f"{title}. {said}", caption=said, draw=draw, inches=WITHOUT_POINTS_INCHES
    )


def drawn_or_said(title: str, pictures: Iterable[Picture]) -> Iterator[Picture]:
    """These pictures; where one cannot be made, one that says so ends them. The rest of the page remains."""
    try:
        yield from pictures
    except Exception as error:
        name = re.sub(r"[^a-z0-9]+", "-", f"not drawn {title}".lower()).strip("-")
        yield not_drawn(name, title, error)


def put_words(axes: Axes, text: str) -> None:
    """Write this where the points would be. A picture of nothing has no axes, since they would have no true
    values."""
    axes.set_axis_off()
    axes.set_title("", loc="left")
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=LIGHT["soft"], fontsize=10
    )


def _has_points(axes: Axes) -> bool:
    """Whether anything is drawn at any place; texts and empty lines are not."""
    return bool(
        axes.collections or axes.patches or axes.images or any(len(line.get_xdata()) for line in axes.lines)  # type: ignore[arg-type]
    )


def _saved(picture: Picture, shape: PictureShape, **options: Any) -> bytes:
    """The file that matplotlib makes of it; whatever is wrong with the picture, there is one."""
    content = BytesIO()
    try:
        _draw(picture, shape).savefig(content, **options)
    except Exception as error:
        content = BytesIO()
        _draw(not_drawn(picture.name, picture.title, error), shape).savefig(content, **options)
    return content.getvalue()


def _draw(picture: Picture, shape: PictureShape) -> Figure:
    # matplotlib takes most of a second to import: only who wants a picture waits for it. Without pyplot
    # nothing looks for a display.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # A dollar in a name is a dollar, and not a formula; and a number at an axis is the value there, without
    # another one at its end that is to be added.
    look: dict[Any, Any] = {"font.size": 9, "font.family": "sans-serif", "text.parse_math": False}
    with rc_context({**look, "axes.formatter.useoffset": False, "axes.formatter.limits": (-6, 9)}):
        figure = Figure(figsize=picture.size(shape), layout="constrained")
        figure.set_dpi(72)
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr, call-arg]
        axes = figure.add_subplot()
        bare_axes(axes)
        picture.draw(axes, shape)
        if not _has_points(axes) and not axes.texts:
            put_words(axes, NO_POINTS)
    return figure


def _svg(picture: Picture, shape: PictureShape, *, in_page: bool, prefix: str) -> str:
    """
    Args:
        in_page: Colours are CSS variables of whatever is around the element.
        prefix: Prefix of every id: two pictures of a page must not share one.
    """
    from matplotlib import rc_context

    # Text stays text, so that the page's own font is used and the picture can be searched.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "evenhand", "text.parse_math": False}):
        text = _saved(
            picture,
            shape,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        ).decode()
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = _with_ids(text, prefix)
    text = re.sub(
        r"font: ([^;\"]*?)(\d+(?:\.\d+)?px) [^;\"]*",
        r"font: \1\2 system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
        text,
    )
    if in_page:
        for name, colour in LIGHT.items():
            text = text.replace(colour, f"var(--{name},{colour})")
    head, _, rest = text.partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    # A page must not show a tooltip over the whole picture, which a title would.
    label = f' aria-label="{_escape(picture.alt)}"' if in_page else ""
    title = "" if in_page else f"<title>{_escape(picture.alt)}</title>"
    size = "" if in_page else " ".join(re.findall(r'(?:width|height)="[^"]*"', head)) + " "
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}{box.group()}'
        f' role="img"{label}>{title}{_shorter(rest)}'
    )


def _with_ids(text: str, prefix: str) -> str:
    """The text with only those ids that something refers to, numbered under the prefix."""
    used = set(re.findall(r'xlink:href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
    numbers = count(1)
    names: dict[str, str] = {}
    for name in re.findall(r'\bid="([^"]+)"', text):
        if name in used:
            names.setdefault(name, f"{prefix}-{next(numbers)}")
    text = re.sub(
        r'\s*\bid="([^"]+)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", text
    )
    text = re.sub(r'xlink:href="#([^"]+)"', lambda found: f'href="#{names[found[1]]}"', text)
    return re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{names[found[1]]})", text)


def _shorter(text: str) -> str:
    """The same picture in fewer octets: a page has dozens, each twice."""
    text = re.sub(r"\s*<defs>\s*<style type=\"text/css\">.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    # In tags alone: between them are labels.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), text)
    return re.sub(r">\s+<", "><", text).strip()


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
