# SPDX-License-Identifier: Apache-2.0
"""Station 7: what a tester is asked, be it one engine or several."""

from __future__ import annotations

from typing import Any, Protocol

from evenhand.trial.engine_session import ANSWER_TIMEOUT_S, Document, EventCallback


class TesterSession(Protocol):
    """One request after the other, each answered: `EngineSession`, and `EngineGroup` for several engines."""

    @property
    def about(self) -> Document:
        """Version, contract and DPDK."""
        ...

    def request(
        self,
        name: str,
        *,
        on_event: EventCallback | None = None,
        answer_within_s: float = ANSWER_TIMEOUT_S,
        **arguments: Any,
    ) -> Document:
        """See `EngineSession.request`."""
        ...
