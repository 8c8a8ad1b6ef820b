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
    from evenhand.base.errors import EngineError, EvenhandError, HostError, PlanError, RequestError
    from evenhand.plan import (
        AddressPlan,
        Direction,
        DrawnOrder,
        FrameSize,
        HostMacs,
        Imix,
        make_plan,
        mix_versions,
        parse_imix,
        read_plan_file,
    )
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
        Capacity,
        CapacityGoal,
        CapacityOutcome,
        CapacityStep,
        Conditions,
        ConnectionRate,
        ConnectionRateGoal,
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
        OnePair,
        OpenTestbed,
        OrderName,
        ProcedureEvent,
        Profile,
        Recovery,
        RecoveryGoal,
        Removal,
        Repetitions,
        Row,
        SingleTrial,
        Statistics,
        TearDown,
        TearDownGoal,
        Throughput,
        ThroughputTable,
        TrialPhase,
    )
    from evenhand.search import (
        Goal,
        MlrGoal,
        MlrGoals,
        MlrResult,
        Outcome,
        Purpose,
        SearchTrial,
        ThroughputGoal,
        ThroughputResult,
        TrialFinished,
        TrialStarted,
        Tst009Goal,
    )
    from evenhand.trial import (
        RFC_WAITS,
        SHORT_WAITS,
        Deviation,
        DirectionRates,
        DirectionResult,
        Limits,
        TrialResult,
        Verdict,
        Waits,
    )

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
    "Capacity",
    "CapacityGoal",
    "CapacityOutcome",
    "CapacityStep",
    "Conditions",
    "ConnectionRate",
    "ConnectionRateGoal",
    "ConnectionWish",
    "DelayGoal",
    "DelayResult",
    "DelayTest",
    "Deviation",
    "Direction",
    "DirectionRates",
    "DirectionResult",
    "DrawnOrder",
    "EngineError",
    "EvenhandError",
    "FrameLoss",
    "FrameSize",
    "Goal",
    "HostError",
    "HostMacs",
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
    "MlrResult",
    "Note",
    "OnePair",
    "OpenTestbed",
    "OrderName",
    "Outcome",
    "PlanError",
    "ProcedureEvent",
    "Profile",
    "Purpose",
    "Recovery",
    "RecoveryGoal",
    "Removal",
    "Repetitions",
    "RequestError",
    "Row",
    "SearchTrial",
    "SingleTrial",
    "Statistics",
    "TearDown",
    "TearDownGoal",
    "Throughput",
    "ThroughputGoal",
    "ThroughputResult",
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
    "read_plan_file",
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
