# SPDX-License-Identifier: Apache-2.0
"""The documents have no more words than a reader has time for: each group of pages has a number, and what has
been added since has one for all groups together."""

from __future__ import annotations

import re

from tests.docs.documents import ROOT, name_of, read

MOST_WORDS = {
    "start": 5_700,
    "tasks": 23_000,
    "reference": 34_300,
    "explanation": 14_500,
    "developers": 9_500,
}
PATTERNS = {
    "start": ("README.md", "docs/README.md", "docs/tutorial/*.md"),
    "tasks": ("docs/how-to/*.md",),
    "reference": ("docs/reference/*.md",),
    "explanation": ("docs/explanation/*.md",),
    "developers": ("docs/developers/*.md", "HACKING.md", "CONTRIBUTING.md"),
}
STOOD = {
    *("README.md", "HACKING.md", "CONTRIBUTING.md", "docs/README.md"),
    *(
        f"docs/{folder}/{name}.md"
        for folder, names in {
            "tutorial": "first-number first-throughput one-router-three-results",
            "how-to": "check-a-host choose-a-search compare-two-runs configure-the-dut follow-a-trend"
            " from-siitperf install-packages keep-a-run look-inside-the-dut measure-bursts"
            " measure-every-night measure-from-python measure-latency measure-loss measure-many"
            " measure-on-several-testbeds measure-recovery merge-runs mix-frames predict-a-router"
            " prove-randomness read-an-invalid-trial"
            " read-the-report reproduce-appendix-a run-a-campaign set-up-the-dut-over-ssh test-a-nat"
            " test-a-router test-a-translator test-a-virtual-router test-with-direct-hosts troubleshooting"
            " use-nics use-several-cores use-several-engines",
            "reference": "campaign-file cli conformance drivers export frame glossary import plans progress"
            " python reference-router result testbed-file trend",
            "explanation": "100-gigabit clean-time draft-report filling-queues hashing isolation linux-lab"
            " neighbours pacing-and-clock randomness reading-a-series reference-router searches"
            " streams-and-queues trends validity",
            "developers": "decisions dependencies",
        }.items()
        for name in names.split()
    ),
}
"""Pages that the numbers are for. Any other page came later, with something new to do."""
MOST_WORDS_LATER = 14_500
"""On pages that came later, and on those that stood where a group has more than its number."""


def pages(group: str) -> list[str]:
    return [name_of(path) for pattern in PATTERNS[group] for path in ROOT.glob(pattern)]


def words(page: str) -> int:
    """What has a letter or a digit: a rule or a line of a table, a bullet, a sign of a heading is none."""
    return len([word for word in read(page).split() if re.search(r"\w", word)])


def words_of_those_that_stood(group: str) -> int:
    return sum(words(page) for page in pages(group) if page in STOOD)


def test_every_page_that_stood_is_there() -> None:
    """One that was renamed would count as new."""
    assert STOOD - {page for group in PATTERNS for page in pages(group)} == set()


def test_what_has_come_since_has_no_more_words_than_it_may() -> None:
    """What is new has pages of its own, and is also on pages that list all verbs, keys or reasons."""
    grown = sum(max(0, words_of_those_that_stood(group) - most) for group, most in MOST_WORDS.items())
    later = sum(words(page) for group in PATTERNS for page in pages(group) if page not in STOOD)
    assert grown + later <= MOST_WORDS_LATER
