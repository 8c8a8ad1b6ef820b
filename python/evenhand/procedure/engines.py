# SPDX-License-Identifier: Apache-2.0
"""Procedure: the engine of a testbed, or its several engines, started and opened."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import EngineError, EvenhandError, HostError
from evenhand.plan import AddressPlan, FrameSize, HostMacs
from evenhand.trial import (
    DEFAULT_START_DIFFERENCE_US,
    EngineGroup,
    EngineMember,
    EngineSession,
    TesterSession,
)

if TYPE_CHECKING:
    from evenhand.rig import Setup


class EnginesOf:
    """Those of one set-up: how each is started, and what each opens."""

    def __init__(self, setup: Setup, engine: Path | None) -> None:
        """HostError if there is no engine here, or no ssh. Starts nothing."""
        self._setup = setup
        self._engines = setup.testbed.engine
        self._commands = setup.engine_commands(engine)

    @property
    def cpus_here(self) -> list[int]:
        """CPUs of this host that are busy with testing."""
        if not self._engines:
            return list(self._setup.testbed.tester.cpus)
        return [cpu for engine in self._engines if engine.ssh is None for cpu in engine.cpus]

    def start(self, stack: ExitStack, locked: Sequence[int]) -> TesterSession:
        """Start all; `stack` ends them. An error of one of several names it: HostError also where it is not
        reached."""
        if not self._engines:
            return stack.enter_context(EngineSession(self._commands[0], inherited=locked))
        members = []
        for engine, command in zip(self._engines, self._commands, strict=True):
            try:
                session = stack.enter_context(
                    EngineSession(command, inherited=locked if engine.ssh is None else ())
                )
            except EvenhandError as error:
                raise _not_started(engine.name, engine.ssh, error) from error
            members.append(
                EngineMember(
                    name=engine.name, session=session, streams=engine.streams, is_here=engine.ssh is None
                )
            )
        limit_s = self._setup.testbed.limits.start_difference
        return EngineGroup(
            members, start_difference_us=DEFAULT_START_DIFFERENCE_US if limit_s is None else limit_s * 1e6
        )

    def open(
        self,
        session: TesterSession,
        plan: AddressPlan,
        *,
        frame_size: FrameSize,
        seed: int,
        host_macs: HostMacs,
    ) -> dict[str, Any]:
        """What the tester reports of its ports; see `TesterSession.open`."""
        requests = self._setup.testbed.open_requests(plan, frame_size=frame_size, seed=seed)
        return session.open(requests, host_macs=host_macs)


def _not_started(name: str, ssh: str | None, error: EvenhandError) -> EvenhandError:
    where = f"engine {name}" if ssh is None else f"engine {name}, {ssh}"
    if ssh is not None and isinstance(error, EngineError):
        return HostError(
            f"engine {name} cannot be reached: {error.what}",
            code="procedure.engine-not-reached",
            where=where,
            next_step=f"Try it by hand: ssh {ssh} evenhand-engine --about",
        )
    return type(error)(
        f"engine {name}: {error.what}", code=error.code, where=where, next_step=error.next_step
    )
