# SPDX-License-Identifier: Apache-2.0
"""Specification: the seed, of which all that is drawn follows: of a verb's frames, or of a whole campaign."""

from __future__ import annotations

from typing import Annotated

from evenhand.base.option import Option, needed_field
from evenhand.trial import LARGEST_SEED

DEFAULT_SEED = 1
SeedOption = Annotated[int, Option(least=0, most=LARGEST_SEED, help="Same seed, same frames.")]
SEED = needed_field("seed", SeedOption, DEFAULT_SEED)
