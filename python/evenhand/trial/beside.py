# SPDX-License-Identifier: Apache-2.0
"""Station 7: what is asked of an engine beside the request that runs: a stop, its links."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from evenhand.base.errors import EvenhandError
from evenhand.trial.engine_process import violated
from evenhand.trial.reply_check import check_response

Document = dict[str, Any]


class AskedBeside:
    """Replies that somebody else waits for than whoever reads them, by the ids of their requests. For any
    thread."""

    def __init__(self, error_of: Callable[[Any], EvenhandError]) -> None:
        """
        Args:
            error_of: The error for a fault of the engine's.
        """
        self._error_of = error_of
        self._answers: dict[int, tuple[str, Future[Document]]] = {}

    def expect(self, request_id: int, name: str, answer: Future[Document]) -> None:
        """The answer gets the reply to this request."""
        self._answers[request_id] = (name, answer)

    def take(self, reply: Document) -> bool:
        """Hand over a reply, or the error that it is; False if nobody asked for it beside another request."""
        identity = reply.get("id")
        asked = self._answers.pop(identity, None) if type(identity) is int else None
        if asked is None:
            return False
        name, answer = asked
        try:
            if "fault" in reply:
                raise self._error_of(reply["fault"])
            if reply.get("response") != name:
                raise violated(f"the engine answered {reply.get('response')!r:.80}", name)
            try:
                check_response(name, reply)
            except (KeyError, TypeError, ValueError) as error:
                raise violated(f"the engine's answer violates the contract: {error}", name) from error
        except EvenhandError as error:
            answer.set_exception(error)
        else:
            answer.set_result(reply)
        return True
