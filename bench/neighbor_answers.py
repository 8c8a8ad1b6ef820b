# SPDX-License-Identifier: Apache-2.0
"""Answers for hosts on the link beside a trial: 200,000 questions a second while one core sends at up to 80 %
of what it can.

A DUT whose 65,533 neighbour entries went stale together asks on the receiving side; the frames of the trial
leave on the other side into a port that drops. So every trial loses all its frames, and what counts is that
none of them is INVALID and that every question has its answer. The tester's ceiling is the highest load whose
trials are valid when next to nobody asks: on a virtual machine that stalls now and then it lies well below
what the core can send, and the stalls are not the questions' doing. For the same reason each case is tried
several times, with questions and without, and all are recorded.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from pieces import IS_SHORT, at_length, opened, record, trial

from evenhand.plan import AddressPlan, make_plan
from evenhand.testbed.workers import lay_out_workers
from evenhand.trial.engine_process import find_engine

ASKER = find_engine().parent / "bench" / "evenhand-bench-asker"
QUESTIONS_PER_SECOND = 200_000
ASKING_S = at_length(5.0, 3.0)
TRIAL_S = at_length(2.0, 0.2)
TRIALS = at_length(5, 1)
SHARES = (0.5,) if IS_SHORT else (0.5, 0.8)
"""Shares of the tester's ceiling."""
LADDER = (0.2,) if IS_SHORT else (0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Where the ceiling is looked for, as shares of what the core can send."""
BEYOND_REACH_FPS = 4e8
LEFT = "net_null0,no-rx=1"
WORKERS = lay_out_workers([1])


def is_valid(document: dict[str, Any]) -> bool:
    return bool(document["verdict"] != "INVALID")


def ceiling_fps(plan: AddressPlan) -> float:
    """The highest load of the ladder at which most trials are valid when next to nobody asks; 0 if there is
    none.

    The asker runs all the same: its CPU may be the other half of our core.
    """
    looks = range(at_length(2, 1))
    can_send = max(
        float(answered_trial(plan, BEYOND_REACH_FPS, questions_per_second=1)["offered_fps"]) for _ in looks
    )
    for share in LADDER:
        if (
            sum(
                is_valid(answered_trial(plan, can_send * share, questions_per_second=1))
                for _ in range(TRIALS)
            )
            > TRIALS // 2
        ):
            return can_send * share
    return can_send * LADDER[-1] if IS_SHORT else 0.0


def answered_trial(
    plan: AddressPlan, rate_fps: float, *, questions_per_second: int = QUESTIONS_PER_SECOND
) -> dict[str, Any]:
    """One trial while the asker asks from before its beginning to after its end."""
    with tempfile.TemporaryDirectory() as folder:
        device = f"net_memif0,role={{}},id=0,socket={Path(folder) / 'right'},socket-abstract=no,rsize=11"
        command = [
            str(ASKER),
            device.format("server"),
            "0",
            str(plan.ip_version),
            str(questions_per_second),
            str(ASKING_S),
        ]
        asker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            with opened(plan, LEFT, device.format("client"), WORKERS) as session:
                time.sleep(1)  # the asker measures its clock first
                before, began = session.request("counters")["right"]["neighbor"]["answers"], time.monotonic()
                document = trial(session, rate_fps, TRIAL_S)
                answers, seconds = (
                    session.request("counters")["right"]["neighbor"]["answers"] - before,
                    time.monotonic() - began,
                )
                asked = json.loads(asker.communicate(timeout=60)[0].splitlines()[-1])
        finally:
            asker.kill()
    forward = document["directions"]["forward"]
    return {
        "verdict": document["verdict"],
        "reasons": [reason["code"] for reason in document["reasons"]],
        "offered_fps": forward["offered_fps"],
        "max_overdue_us": forward["sender"]["max_overdue_us"],
        "answers_per_second_in_trial": answers / seconds,
        "asker": asked,
    }


def main() -> None:
    cases: list[dict[str, Any]] = []
    for name in ("direct_v4_net16", "direct_v6"):
        plan = make_plan(name)
        ceiling = ceiling_fps(plan)
        for share in SHARES:
            trials, quiet = [], []
            for _ in range(TRIALS):  # in turn, so that both meet the same stalls
                trials.append(answered_trial(plan, ceiling * share))
                quiet.append(answered_trial(plan, ceiling * share, questions_per_second=1))
            lost = [t["asker"]["questions"] - t["asker"]["answers"] for t in trials]
            print(
                f"{name:16} {share:.0%} of {ceiling / 1e6:.1f} Mfps: {sum(map(is_valid, trials))} of"
                f" {TRIALS} trials valid"
                f" ({sum(map(is_valid, quiet))} of {TRIALS} without questions),"
                f" {min(t['answers_per_second_in_trial'] for t in trials):,.0f} answers/s at least,"
                f" questions without answer {lost}"
            )
            cases.append(
                {
                    "plan": name,
                    "ceiling_fps": ceiling,
                    "share": share,
                    "trials": trials,
                    "trials_without_questions": quiet,
                }
            )
    figures = {
        f"{case['plan']}, {case['share']:.0%} of the ceiling (answers a second, least)": min(
            each["answers_per_second_in_trial"] for each in case["trials"]
        )
        for case in cases
    }
    record(
        "neighbor_answers",
        {"questions_per_second": QUESTIONS_PER_SECOND, "trial_s": TRIAL_S, "cases": cases},
        figures,
    )


if __name__ == "__main__":
    main()
