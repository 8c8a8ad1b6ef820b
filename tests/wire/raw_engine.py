# SPDX-License-Identifier: Apache-2.0
"""An engine whose client does what `EngineSession` never would: many requests at once, lines that are none,
replies that nobody reads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenhand.plan import SIDES, AddressPlan, SideName, gateway_v4
from evenhand.testbed import needed_memory_mb
from evenhand.trial import find_engine
from tests.wire.wire_session import NOBODY, one_worker

Document = dict[str, Any]


class RawEngine:
    """A process that takes lines and answers in lines; killed at the end if it still runs."""

    def __init__(self, command: Sequence[str | Path] | None = None) -> None:
        self.process = subprocess.Popen(
            command or [find_engine()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue

    def say(self, *requests: Document | str) -> None:
        """All of them in one write: the engine finds the last while it serves the first."""
        lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()

    def hear(self) -> Document:
        """The next line."""
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def hear_answers(self, number: int) -> list[Document]:
        """The next responses and faults; events between them are passed over."""
        answers: list[Document] = []
        while len(answers) < number:
            document = self.hear()
            if "event" not in document:
                answers.append(document)
        return answers

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


def open_request(
    plan: AddressPlan | None = None, *, dut_macs: tuple[str, str] | None = NOBODY, request_id: int = 1
) -> Document:
    """Ports that nothing ever comes from."""
    plan = plan or gateway_v4()
    ports: dict[SideName, Document] = {
        "left": {"device": "net_null0,no-rx=1"},
        "right": {"device": "net_null1,no-rx=1"},
    }
    if dut_macs:
        for side, mac in zip(SIDES, dut_macs, strict=True):
            ports[side]["dut_mac"] = mac
    workers = one_worker()
    return {
        "id": request_id,
        "request": "open",
        "host": {"memory_mb": needed_memory_mb(workers, ports)},
        "ports": ports,
        "workers": workers,
        "plan": plan.to_contract(),
        "frame_size": plan.smallest_frame_size,
        "seed": 1,
    }
