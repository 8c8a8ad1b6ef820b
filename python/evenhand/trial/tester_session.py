# SPDX-License-Identifier: Apache-2.0
"""Station 7: what a tester is asked, be it one engine or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from evenhand.trial.engine_session import ANSWER_TIMEOUT_S, Document, EventCallback


class TesterSession(Protocol):
    """One request after the other, each answered: `EngineSession`, and `EngineGroup` for several engines."""

    @property
    def about(self) -> Document:
        """Version, contract and DPDK."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether one engine makes each trial."""
        ...

    @property
    def can_reopen(self) -> bool:
        """Whether `restart`, and `open` after it, open ports again that have stopped."""
        ...

    def open(self, requests: Sequence[Document], **arguments: Any) -> Document:
        """Open the ports of each engine.

        Args:
            requests: Arguments of `open` for each engine, in their order.
            arguments: Arguments for all of them.

        Returns:
            `left` and `right` with what all have together.
        """
        ...

    def restart(self) -> None:
        """Start it anew, with no ports open. RequestError unless `can_reopen`."""
        ...

    def request(
        self,
        name: str,
        *,
        on_event: EventCallback | None = None,
        answer_within_s: float = ANSWER_TIMEOUT_S,
        ended_within_s: float = math.inf,
        **arguments: Any,
    ) -> Document:
        """See `EngineSession.request`."""
        ...
