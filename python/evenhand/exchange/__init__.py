# SPDX-License-Identifier: Apache-2.0
"""Exchange: other testers' files. Theirs are read as a stranger's, key by key; ours are written for them as
far as they can say it."""

from evenhand.exchange.otg_read import import_otg
from evenhand.exchange.otg_write import OtgExport, otg_of
from evenhand.exchange.outcome import Became, Command, Imported, Row
from evenhand.exchange.siitperf_import import import_siitperf
from evenhand.exchange.testbed_text import Given

__all__ = [
    "Became",
    "Command",
    "Given",
    "Imported",
    "OtgExport",
    "Row",
    "import_otg",
    "import_siitperf",
    "otg_of",
]
