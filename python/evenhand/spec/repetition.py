# SPDX-License-Identifier: Apache-2.0
"""Specification: how often a procedure is made as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evenhand.base.option import RATIO, Option, options_of, values_of
from evenhand.procedure import Repetitions


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionOptions:
    """How often, and when that is enough. A campaign file has the number alone, with another default: a
    campaign is for statistics (SEED-72)."""

    repetitions: Annotated[
        int,
        Option(metavar="N", sets="count", help="Repeat N times; median, percentiles and spread are shown."),
    ] = 1
    spread: Annotated[
        str | None,
        Option(
            grammar=RATIO,
            help="Stop early, after 3 repetitions or more, when (maximum - minimum) / median is within this"
            " ratio.",
        ),
    ] = None

    def read(self) -> Repetitions:
        """RequestError names the option."""
        return Repetitions(**values_of(self))


REPETITIONS, _ = options_of(RepetitionOptions)
