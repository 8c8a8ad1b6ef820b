# SPDX-License-Identifier: Apache-2.0
"""OTG: the frame sizes of a flow: one, several in turn or in exact shares, or drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.exchange.otg_flow import choice_of
from evenhand.otg.refusals import other_keys
from evenhand.plan import FrameSize, Imix, is_weighted, parse_imix

IMIX = "64:7,570:4,1518:1"
"""That of OTG's name."""
MOST_SIZES = 64
"""How many sizes the frames of a port have at most."""
_ENDS = {"increment": ("start", "end"), "random": ("min", "max")}
_USUAL_ENDS = (64, 1518)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Octets with the FCS."""

    octets: Sequence[int] = (64,)
    """In turn: in the order of the frames. Drawn: all from the least to the largest. In shares: each once."""
    shares: tuple[int, ...] = ()
    """Those of `octets`; empty: all are equal."""
    is_drawn: bool = False
    imix: Imix | None = None
    """The same for frames that are alike in all else."""

    @property
    def frame_size(self) -> FrameSize:
        """What frames have that are no flows of a plan."""
        return self.octets[0] if self.imix is None else self.imix

    @property
    def are_in_turn(self) -> bool:
        return len(self.octets) > 1 and not self.is_drawn and not self.shares

    @property
    def least(self) -> int:
        return self.octets[0] if self.is_drawn else min(self.octets)

    @property
    def mean(self) -> Fraction:
        if self.is_drawn:
            return Fraction(self.octets[0] + self.octets[-1], 2)
        weights = self.shares or (1,) * len(self.octets)
        octets = sum(size * weight for size, weight in zip(self.octets, weights, strict=True))
        return Fraction(octets, sum(weights))

    def counted(self, most: int) -> tuple[tuple[int, int], ...]:
        """Sizes with their shares. If more are drawn from than can be sent, these are an even number from the
        least to the largest, as far from each other as whole octets allow: their mean is that of all.

        Args:
            most: Drawn sizes that can be sent, at least 2.
        """
        count = len(self.octets)
        if self.is_drawn and count > most:
            # An odd number of gaps: no size lies in the middle between two octets, so all are rounded alike
            # from both ends.
            gaps, span = most - most % 2 - 1, self.octets[-1] - self.octets[0]
            sizes = (self.octets[0] + (2 * n * span + gaps) // (2 * gaps) for n in range(gaps + 1))
            return tuple((size, 1) for size in sizes)
        return tuple(zip(self.octets, self.shares or (1,) * count, strict=True))


def read_sizes(size: Mapping[str, Any] | None, at: str, errors: list[str]) -> Sizes:
    """The sizes of a flow; what cannot be sent is added to the errors.

    Args:
        at: The flow's place in the configuration.
    """
    choice, given = choice_of(size, "fixed"), size or {}
    inner = given.get(choice, {})
    if choice == "fixed":
        return Sizes(octets=(int(given.get("fixed", 64)),))
    if choice in _ENDS:
        errors += other_keys(inner, f"flows[].size.{choice}", f"{at}.size.{choice}")
        start, end = (
            int(inner.get(key, usual)) for key, usual in zip(_ENDS[choice], _USUAL_ENDS, strict=True)
        )
        found = range(start, end + 1, max(int(inner.get("step", 1)), 1))
        if not found:
            errors.append(f"{at}.size.{choice}: no size is from {start} to {end}")
            return Sizes()
        is_drawn = choice == "random" and len(found) > 1
        if len(found) > MOST_SIZES and not is_drawn:
            errors.append(f"{at}.size: {len(found):,} sizes in turn, at most {MOST_SIZES}")
            return Sizes()
        return Sizes(octets=found, is_drawn=is_drawn)
    if choice != "weight_pairs":
        errors.append(f"{at}.size: {choice}: sizes are fixed, increment, random or weight_pairs")
        return Sizes()
    return _read_weights(inner, at, errors)


def _read_weights(pairs: Mapping[str, Any], at: str, errors: list[str]) -> Sizes:
    if choice_of(pairs, "predefined") == "predefined":
        name = pairs.get("predefined", "unspecified")
        if name != "imix":
            errors.append(f"{at}.size: weight_pairs.predefined {name}: write its sizes and weights as custom")
            return Sizes()
        written = IMIX
    else:
        weights = [(each.get("size", 64), float(each.get("weight", 1))) for each in pairs.get("custom", [])]
        if not all(weight.is_integer() for _, weight in weights):
            errors.append(f"{at}.size: weight_pairs.custom: weights are whole numbers here")
            return Sizes()
        written = ",".join(f"{size}:{weight:.0f}" for size, weight in weights)
    try:
        if not is_weighted(written):
            return Sizes(octets=(int(written.split(":")[0]),))
        imix = parse_imix(written, where="size")
    except (EvenhandError, ValueError) as error:
        errors.append(f"{at}.size: weight_pairs: {error}")
        return Sizes()
    counts = Counter(imix.octets)
    return Sizes(octets=tuple(counts), shares=tuple(counts.values()), imix=imix)
