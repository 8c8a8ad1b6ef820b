# SPDX-License-Identifier: Apache-2.0
"""Evenhand: an even-handed benchmark for routers. `open_testbed` is where a script begins."""

from evenhand.api import open_testbed
from evenhand.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.plan import AddressPlan, make_plan
from evenhand.procedure import (
    UP_TO_LINE_RATE,
    Began,
    Conditions,
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
    Repetitions,
    Row,
    SinglePair,
    SingleTrial,
    Statistics,
    Throughput,
    ThroughputTable,
    TrialPhase,
)
from evenhand.search import Outcome, ThroughputGoal, TrialFinished, TrialStarted
from evenhand.trial import RFC_WAITS, SHORT_WAITS, Limits, TrialResult, Verdict, Waits

__all__ = [
    "RFC_WAITS",
    "SHORT_WAITS",
    "UP_TO_LINE_RATE",
    "AddressPlan",
    "Began",
    "Conditions",
    "EngineError",
    "EvenhandError",
    "FrameLoss",
    "HostError",
    "Interval",
    "Learned",
    "LearningChoice",
    "Limits",
    "LossGoal",
    "LossOutcome",
    "LossPoint",
    "LossTable",
    "Measured",
    "Note",
    "OpenTestbed",
    "Outcome",
    "ProcedureEvent",
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
    "Verdict",
    "Waits",
    "__version__",
    "make_plan",
    "open_testbed",
]

__version__ = "0.1.0"
