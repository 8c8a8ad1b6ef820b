# SPDX-License-Identifier: Apache-2.0
"""A library for Robot Framework: examples/router.robot uses it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from robot.api import logger
from robot.api.deco import keyword, library
from robot.api.exceptions import SkipExecution
from robot.libraries.BuiltIn import BuiltIn

import evenhand
from evenhand.base.units import parse_duration, parse_rate
from evenhand.pytest_tester import NotMeasuredError, PytestTester, open_tester_of_test


@library(scope="TEST", version=evenhand.__version__)
class EvenhandLibrary:
    """Measures a router.

    What the router does wrong fails a test. What the tester could not decide, because it or its machine
    spoiled every trial, skips it: that says nothing of the router.

    Rates are per direction, such as ``500kfps`` or ``1Mfps``; durations are such as ``500ms`` or ``60s``.
    """

    def __init__(self, testbed: str, folder: str = ".", plan: str = "gateway-v4", retries: int = 2) -> None:
        """``testbed`` is a testbed file, ``lab:linux``, or ``reference`` for Evenhand's own router.

        Each test has a run file in ``folder``. A single trial that is INVALID is repeated ``retries`` times.
        """
        self._testbed, self._folder, self._plan, self._retries = testbed, Path(folder), plan, retries
        self._stack = ExitStack()
        self._opened: PytestTester | None = None
        self.ROBOT_LIBRARY_LISTENER = self
        self.ROBOT_LISTENER_API_VERSION = 3

    def end_test(self, data: Any, result: Any) -> None:
        """Called by Robot Framework."""
        self._stack.close()
        self._opened = None

    @keyword
    def make_trial(self, rate: str, duration: str = "10s", frame_size: int | None = None) -> Any:
        """Offers one load, and returns the trial."""
        return self._measured(
            "trial",
            rate_fps=parse_rate(rate, where="rate"),
            duration_s=parse_duration(duration, where="duration"),
            frame_size=frame_size,
        )

    @keyword
    def find_throughput(
        self, maximum: str, duration: str = "5s", precision: float = 0.005, frame_size: int | None = None
    ) -> Any:
        """Searches for the highest load that the router forwards without loss (RFC 2544, 26.1)."""
        length_s = parse_duration(duration, where="duration")
        goal = evenhand.ThroughputGoal(
            max_fps=parse_rate(maximum, where="maximum"),
            precision=precision,
            duration_s=length_s,
            final_duration_s=length_s,
        )
        return self._measured("throughput", goal=goal, frame_size=frame_size)

    @keyword
    def trial_should_pass(self, trial: Any) -> None:
        """Fails if a frame was lost, with the reasons of the trial."""
        self._skipping(self._tester().require_pass, trial)

    @keyword
    def throughput_should_be_at_least(self, found: Any, rate: str) -> None:
        """Fails with the trials that decided if the throughput is below this rate."""
        least = parse_rate(rate, where="rate")
        self._skipping(lambda: self._tester().require(found, at_least=least))

    def _tester(self) -> PytestTester:
        if self._opened is None:
            name = str(BuiltIn().get_variable_value("${TEST NAME}"))
            opened = open_tester_of_test(
                self._testbed,
                folder=self._folder,
                stem=re.sub(r"[^\w.=-]+", "_", name),
                node_id=name,
                reference=None,
                conditions={"plan": self._plan, "waits": evenhand.SHORT_WAITS},
                retries=self._retries,
                record=lambda key, value: logger.info(f"{key}: {value}"),
            )
            self._opened = self._stack.enter_context(opened)
        return self._opened

    def _measured(self, method: str, **options: Any) -> Any:
        given = {key: value for key, value in options.items() if value is not None}
        return self._skipping(lambda: getattr(self._tester(), method)(**given))

    @staticmethod
    def _skipping(work: Any, *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except NotMeasuredError as error:
            raise SkipExecution(str(error)) from error
