# SPDX-License-Identifier: Apache-2.0
"""OTG: the links of the tester's own ports: as they are, and taken down and up in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenhand.base.errors import EvenhandError
from evenhand.otg.refusals import OtgError, error_of_model
from evenhand.plan import SIDES, SideName
from evenhand.trial import EngineSession


class PortLinks:
    """For any thread, also while flows are sent."""

    def __init__(self, session: EngineSession | None = None) -> None:
        """
        Args:
            session: The engine that has opened the ports; None: nobody has.
        """
        self._session = session
        self._up: Mapping[SideName, bool] = dict.fromkeys(SIDES, True)
        self.taken_down: frozenset[SideName] = frozenset()
        """Sides whose links the client has taken down."""

    def set(self, sides: Iterable[SideName], *, is_up: bool) -> None:
        """OtgError if a port's driver cannot, or if it sends."""
        if self._session is None:
            raise OtgError(["port.link: the tester has ended; set the configuration again"])
        for side in sides:
            try:
                self._up = self._session.set_link(side, "up" if is_up else "down")
            except EvenhandError as error:
                raise error_of_model(error, at="port.link") from error
            self.taken_down = self.taken_down - {side} if is_up else self.taken_down | {side}

    def up(self) -> Mapping[SideName, bool]:
        """Whether the link of each side is up; once the tester has ended, whether it was."""
        if self._session is not None:
            try:
                self._up = self._session.links_up()
            except EvenhandError:  # what has become of it, the client hears of its flows
                self._session = None
        return self._up
