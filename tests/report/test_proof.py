# SPDX-License-Identifier: Apache-2.0
"""The judgement of a proof: what is suspicious, what is chance, and what cannot be said."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.report.proof import ALARM, contrast_lines, format_p, judge_proof, proof_lines
from evenhand.trial import StreamProof
from evenhand.trial.proof import ChiSquare
from tests.errors import raises

GOLDEN = Path(__file__).resolve().parents[2] / "contract" / "golden" / "replies.jsonl"
WHOLE, STOPPED = [
    reply for reply in map(json.loads, GOLDEN.read_text().splitlines()) if reply.get("response") == "prove"
]


def changed(**changes: Any) -> StreamProof:
    """The golden proof with other values at these paths, such as fields__0__coverage__p."""
    document = copy.deepcopy(WHOLE)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place: Any = document
        for key in parents:
            place = place[int(key)] if key.isdecimal() else place[key]
        place[last] = value
    return StreamProof.from_contract(document)


def test_a_good_stream_is_fine_and_its_bounds_are_told() -> None:
    """Whoever doubts the verdict needs the bound and the figure that is nearest to it."""
    judgement = judge_proof([changed()])
    assert judgement.verdict == "fine"
    assert judgement.suspicious == ()
    assert judgement.bound == ALARM / judgement.figures
    text = "\n".join(proof_lines(judgement))
    assert text.startswith(f"Fine: none of {judgement.figures} figures is out of bounds.")
    assert judgement.most_extreme is not None
    assert judgement.most_extreme.where in text
    assert format_p(judgement.bound) in text


@pytest.mark.parametrize(
    "place",
    [
        "fields__0__coverage__p",
        "fields__3__chi_square__p",
        "fields__1__serial__chi_square__p",
        "fields__2__serial__correlation__p",
        "pairs__0__coverage__p",
        "pairs__5__chi_square__p",
        "pairs__2__correlation__p",
    ],
)
def test_every_figure_is_judged(place: str) -> None:
    """SEED-33, SEED-40, R4814-01: a figure that is shown and not judged would be decoration."""
    assert judge_proof([changed(**{place: 1e-12})]).verdict == "suspicious"


def test_chi_square_is_suspicious_at_both_ends_unless_it_has_few_cells() -> None:
    """Counts that are too even are drawn from no generator that deserves the name."""
    assert judge_proof([changed(fields__2__chi_square__p=1.0)]).verdict == "suspicious"
    assert ChiSquare(value=0, degrees_of_freedom=1, p=1.0).extreme_p == 1
    assert ChiSquare(value=0, degrees_of_freedom=8, p=1.0).extreme_p == 0
    assert ChiSquare(value=8, degrees_of_freedom=8, p=0.43).extreme_p == pytest.approx(0.86)


def test_the_bound_is_shared_by_all_figures_of_all_streams() -> None:
    """Else a proof of many streams would cry wolf."""
    one = changed(fields__0__chi_square__p=1e-6)
    assert judge_proof([one]).verdict == "suspicious"
    assert judge_proof([one, *[changed()] * 9]).verdict == "fine"


def test_a_stopped_proof_claims_nothing() -> None:
    stopped = StreamProof.from_contract(STOPPED)
    assert stopped.is_stopped
    judgement = judge_proof([stopped])
    assert judgement.verdict == "unproven"
    assert judgement.frames_wanted == 645_120
    assert "draw at least 645,120 frames" in "\n".join(proof_lines(judgement))


def test_a_plan_that_draws_nothing_is_unproven() -> None:
    judgement = judge_proof(
        [
            changed(
                fields=[
                    {**field, "proven": False, "chi_square": None, "serial": None}
                    for field in WHOLE["fields"]
                ],
                pairs=[],
            )
        ]
    )
    assert judgement.verdict == "unproven"
    assert proof_lines(judgement) == ["Unproven: the plan does not draw anything."]


def test_a_fault_that_is_not_seen_is_not_called_seen() -> None:
    """So that a proof of few frames does not boast."""
    assert contrast_lines([changed(generator="modulo")]) == [
        "16 bits modulo N: not seen with 1,000,000 frames of this plan."
    ]
    assert (
        "suspicious, 1 of"
        in contrast_lines([changed(generator="fifteen_bit", fields__0__coverage__p=0.0)])[0]
    )


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0, "< 1e-300"),
        (3.94e-6, "3.9e-06"),
        (0.6321, "0.632"),
        (1.0, "> 0.999999999999"),
        (0.99995, "> 0.9999"),
    ],
)
def test_probabilities_are_readable_at_both_ends(p: float, text: str) -> None:
    assert format_p(p) == text


@pytest.mark.parametrize(
    "change",
    [
        {"generator": "dice"},
        {"direction": "up"},
        {"fields": None},
        {"fields__0__coverage__p": 1.5},
        {"pairs__0__rows": "x"},
    ],
)
def test_a_proof_outside_the_contract_is_a_bug(change: dict[str, Any]) -> None:
    with raises("trial.contract-violated"):
        changed(**change)
