# SPDX-License-Identifier: Apache-2.0
"""Worker layouts: both directions get the same, whatever the number of CPUs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evenhand.testbed import lay_out_workers


@given(st.lists(st.integers(min_value=0, max_value=255), min_size=1, max_size=33, unique=True))
def test_every_cpu_works_and_both_directions_get_the_same(cpus: list[int]) -> None:
    """R2544-15: the same rate each way needs the same means each way."""
    workers = lay_out_workers(cpus)
    assert [worker["cpu"] for worker in workers] == cpus
    senders = [(s["side"], s["stream"]) for worker in workers for s in worker.get("senders", [])]
    receivers = [(r["side"], r["queue"]) for worker in workers for r in worker.get("receivers", [])]
    assert sorted(receivers) == [("left", 0), ("right", 0)]
    assert len(set(senders)) == len(senders)
    count = Counter(side for side, _ in senders)
    assert count["left"] == count["right"] >= 1
    assert sorted(stream for side, stream in senders if side == "left") == list(range(count["left"]))
    assert all(worker.get("senders") or worker.get("receivers") for worker in workers)


def test_two_cpus_have_a_port_each() -> None:
    assert lay_out_workers([4, 7]) == [
        {"cpu": 4, "senders": [{"side": "left", "stream": 0}], "receivers": [{"side": "left", "queue": 0}]},
        {"cpu": 7, "senders": [{"side": "right", "stream": 0}], "receivers": [{"side": "right", "queue": 0}]},
    ]
