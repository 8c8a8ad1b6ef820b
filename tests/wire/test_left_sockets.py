# SPDX-License-Identifier: Apache-2.0
"""The socket of a memif's server that was killed does not block the next one on its path."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evenhand.plan import gateway_v6
from evenhand.trial import EngineSession
from tests.errors import raises
from tests.wire.wire_session import engine, memif_cable, open_ports, valid_trial

pytestmark = pytest.mark.wire


def process_of(session: EngineSession) -> int:
    return session._process.pid


def test_an_engine_that_was_killed_does_not_block_its_sockets(tmp_path: Path) -> None:
    """What nobody listens on is removed. What another process listens on is not: the error names it. A file
    that is no socket stays, too."""
    cable = memif_cable(tmp_path)
    with engine() as killed:
        open_ports(killed, gateway_v6(), *cable)
        with engine() as second, raises("engine.bad-request", match="listens there already") as error:
            open_ports(second, gateway_v6(), *cable)
        assert f"process {process_of(killed)} (evenhand-engine)" in error.value.what
        assert error.value.where == "left.device"
        os.kill(process_of(killed), signal.SIGKILL)
        killed._process.wait()
    assert (tmp_path / "cable").is_socket()
    with engine() as session:
        open_ports(session, gateway_v6(), *cable)
        assert valid_trial(session, duration_s=0.1)["verdict"] == "PASS"
