# SPDX-License-Identifier: Apache-2.0
"""Evenhand: an even-handed benchmark for routers. `open_testbed` is where a script begins.

A name is loaded when it is first used. An import of a room such as `evenhand.plan` loads that room and those
below it, and nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.base.version import VERSION

if TYPE_CHECKING:
    from evenhand.api import open_testbed
    from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
    from evenhand.plan import AddressPlan, DrawnOrder, Imix, make_plan, mix_versions, parse_imix
    from evenhand.procedure import (
        UP_TO_LINE_RATE,
        BackToBack,
        BackToBackGoal,
        BackToBackTable,
        Began,
        BurstGoal,
        BurstInterval,
        BurstIntervals,
        BurstSearch,
        Conditions,
        ConnectionWish,
        DelayGoal,
        DelayResult,
        DelayTest,
        FrameLoss,
        Interval,
        Learned,
        LearningChoice,
        LossGoal,
        LossOutcome,
        LossPoint,
        LossTable,
        Measured,
        Note,
        OpenTestbed,
        ProcedureEvent,
        Recovery,
        RecoveryGoal,
        Repetitions,
        Row,
        SinglePair,
        SingleTrial,
        Statistics,
        Throughput,
        ThroughputTable,
        TrialPhase,
    )
    from evenhand.search import (
        MlrGoal,
        MlrGoals,
        Outcome,
        ThroughputGoal,
        TrialFinished,
        TrialStarted,
        Tst009Goal,
    )
    from evenhand.trial import RFC_WAITS, SHORT_WAITS, Limits, TrialResult, Verdict, Waits

__all__ = [
    "RFC_WAITS",
    "SHORT_WAITS",
    "UP_TO_LINE_RATE",
    "AddressPlan",
    "BackToBack",
    "BackToBackGoal",
    "BackToBackTable",
    "Began",
    "BurstGoal",
    "BurstInterval",
    "BurstIntervals",
    "BurstSearch",
    "Conditions",
    "ConnectionWish",
    "DelayGoal",
    "DelayResult",
    "DelayTest",
    "DrawnOrder",
    "EngineError",
    "EvenhandError",
    "FrameLoss",
    "HostError",
    "Imix",
    "Interval",
    "Learned",
    "LearningChoice",
    "Limits",
    "LossGoal",
    "LossOutcome",
    "LossPoint",
    "LossTable",
    "Measured",
    "MlrGoal",
    "MlrGoals",
    "Note",
    "OpenTestbed",
    "Outcome",
    "ProcedureEvent",
    "Recovery",
    "RecoveryGoal",
    "Repetitions",
    "RequestError",
    "Row",
    "SinglePair",
    "SingleTrial",
    "Statistics",
    "Throughput",
    "ThroughputGoal",
    "ThroughputTable",
    "TrialFinished",
    "TrialPhase",
    "TrialResult",
    "TrialStarted",
    "Tst009Goal",
    "Verdict",
    "Waits",
    "__version__",
    "make_plan",
    "mix_versions",
    "open_testbed",
    "parse_imix",
]

__version__ = VERSION

_ROOMS = ("base.errors", "plan", "trial", "search", "procedure", "api")
"""Rooms that have the names, lowest first: to load a room loads those before it anyway."""

if not TYPE_CHECKING:  # With it, no misspelt name would be an error to a type checker.

    def __getattr__(name: str) -> Any:
        """PEP 562: a name of `__all__`, from the first room that has it."""
        if name in __all__:
            for room in _ROOMS:
                module = import_module(f"evenhand.{room}")
                if hasattr(module, name):
                    value = globals()[name] = getattr(module, name)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
