# SPDX-License-Identifier: Apache-2.0
"""The progress of a verb beside its run file, as a campaign has it: for who looks at the folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evenhand.cli.progress.contained import contained
from evenhand.procedure import OnEvent, ProcedureEvent
from evenhand.run import RunStore
from evenhand.run.campaign.events import RunningFile


@contextmanager
def written_beside(store: RunStore | None, what: str, on_event: OnEvent) -> Iterator[OnEvent]:
    """What takes the events of what is measured in the block.

    Args:
        store: None: nothing is stored, and nothing is written.
        what: What is measured, such as the verb.
        on_event: Takes them too.
    """
    if store is None:
        yield on_event
        return
    running = RunningFile(store.path)

    @contained
    def write(event: ProcedureEvent) -> None:
        running.on_event(event)

    def take(event: ProcedureEvent) -> None:
        write(event)
        on_event(event)

    running.begin(what)
    try:
        yield take
    finally:
        running.end()
