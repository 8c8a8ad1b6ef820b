# SPDX-License-Identifier: Apache-2.0
"""Exchange: what of the traffic of a siitperf.conf can be sent here, as plans and their shares."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evenhand.exchange.siitperf_command import SiitperfCommand
from evenhand.exchange.siitperf_connections import find_with_state
from evenhand.exchange.siitperf_file import SiitperfFile
from evenhand.exchange.siitperf_plan import FoundPlan, Version, find_plan, find_translated, has_background
from evenhand.plan.mix import MOST_OF_A_SHARE
from evenhand.plan.translation import Translation


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTraffic:
    """What of the file's traffic can be sent here."""

    plans: tuple[FoundPlan, ...]
    """None: nothing. Two: foreground and background."""
    versions: tuple[Version, ...]
    """IP versions of the foreground, then of the background; both versions of a translated foreground
    alone."""
    is_translated: bool
    """Whether the foreground is."""
    is_stateful: bool
    """Whether the file is of a stateful test."""
    has_state: bool
    """Whether that can be sent: connections, by a plan whose DUT keeps state."""
    is_background_only: bool
    share: tuple[int, int] | None
    """Ratio of foreground to background, if both are sent."""

    @property
    def is_rest(self) -> bool:
        """Whether it is what is left of something that is refused."""
        return self.is_stateful and not self.has_state

    @property
    def translation(self) -> Translation | None:
        """The translation that the DUT must be configured for, if translated frames are sent."""
        return self.plans[0].plan.translation if self.plans else None

    @property
    def differences(self) -> dict[str, str]:
        return {key: text for plan in self.plans for key, text in plan.differences.items()}


def traffic_of(file: SiitperfFile, typed: SiitperfCommand | None, plan: str | None) -> ImportedTraffic:
    """The nearest plans.

    Args:
        file: The file, with IPv6 on the left if it is translated.
        plan: The user's choice for the foreground; that of the background follows from the file.

    Raises:
        RequestError: A key is missing, or there is no such plan.
    """
    left, right = file.value("IP-L-Vers"), file.value("IP-R-Vers")
    of, m = (2, 2) if typed is None else (typed.arguments["n"], typed.arguments["m"])
    is_stateful = bool(file.value("Stateful"))
    is_background_only = m == 0
    is_translated = left != right and not is_background_only
    versions: list[Version] = [4 if left == 4 else 6]
    share: tuple[int, int] | None = None
    plans: list[FoundPlan] | None = None
    with_state = find_with_state(file, plan) if is_stateful and not is_background_only else None
    if with_state is not None:
        versions = list(dict.fromkeys((left, right)))
        plans = [with_state]
    elif not (file.value("Forward") or file.value("Reverse")):
        versions = []  # the preliminary phase of a stateful test alone
    elif is_background_only or (is_translated and is_stateful):
        versions = [6] if is_background_only or has_background(file) else []
    elif is_translated:
        versions, share = [6, 4], _share(m, of) if m < of else None
        plans = find_translated(file, has_background=share is not None, name=plan)
    elif left == 4 and m < of:
        versions, share = [4, 6], _share(m, of)
    if plans is None:
        plans = [
            find_plan(file, version, name=plan if n == 0 else None) for n, version in enumerate(versions)
        ]
    return ImportedTraffic(
        plans=tuple(plans),
        versions=tuple(versions),
        is_translated=is_translated,
        is_stateful=is_stateful,
        has_state=with_state is not None,
        is_background_only=is_background_only,
        share=share,
    )


def _share(m: int, n: int) -> tuple[int, int]:
    """The share as `--mix` has it: exact among so many frames."""
    least = Fraction(1, MOST_OF_A_SHARE)
    near = min(max(Fraction(m, n).limit_denominator(MOST_OF_A_SHARE), least), 1 - least)
    return near.numerator, near.denominator - near.numerator
