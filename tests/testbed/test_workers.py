# SPDX-License-Identifier: Apache-2.0
"""Worker layouts: both directions get the same, whatever the number of CPUs."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.testbed import lay_out_workers, make_testbed
from tests.errors import raises


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


@given(st.integers(min_value=1, max_value=2), st.integers(min_value=1, max_value=8))
def test_one_or_two_cpus_look_at_all_receive_queues(cpus: int, queues: int) -> None:
    """A memif's other end may send on several queues, however few CPUs there are."""
    workers = lay_out_workers(range(cpus), queues)
    assert len(workers) == cpus
    for side in ("left", "right"):
        of_side = [[r["queue"] for r in worker["receivers"] if r["side"] == side] for worker in workers]
        assert sorted(of_side) == sorted([list(range(queues)), *[[]] * (cpus - 1)])


@given(st.integers(min_value=2, max_value=8), st.integers(min_value=1, max_value=8))
def test_each_receive_queue_has_a_cpu_of_its_own(queues: int, streams: int) -> None:
    """R2544-15: and every CPU that is left sends, as many on the left as on the right."""
    workers = lay_out_workers(range(100, 100 + 2 * (queues + streams)), queues)
    assert [worker["cpu"] for worker in workers] == list(range(100, 100 + 2 * (queues + streams)))
    for side in ("left", "right"):
        own = [r["queue"] for worker in workers for r in worker.get("receivers", []) if r["side"] == side]
        assert own == list(range(queues))
        assert [
            s["stream"] for worker in workers for s in worker.get("senders", []) if s["side"] == side
        ] == list(range(streams))
    assert all(len(worker.get("senders", [])) + len(worker.get("receivers", [])) == 1 for worker in workers)


@pytest.mark.parametrize(
    ("cpus", "queues", "code", "named"),
    [
        (3, 2, "rig.too-few-cpus", r"\b3$"),
        (5, 2, "rig.too-few-cpus", r"\b5$"),
        (6, 3, "rig.too-few-cpus", "6 CPUs"),
        (7, 2, "rig.cpus-not-divisible", "7 CPUs"),
    ],
)
def test_too_few_cpus_for_the_receive_queues_are_refused(
    cpus: int, queues: int, code: str, named: str
) -> None:
    """Before anything starts, and with the place in the file."""
    tester = {"cpus": list(range(cpus)), "receive_queues": queues}
    ports = {"left": {"device": "net_null0"}, "right": {"device": "net_null1"}}
    with raises(code, match=named) as error:
        make_testbed({"isolated_test_environment": True, **ports, "tester": tester}, where="bed.toml")
    assert error.value.where == "bed.toml: tester"
