# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: one trial, by the engine or simulated, and what it says."""

from evenhand.trial.engine_session import EngineSession
from evenhand.trial.find_engine import find_engine
from evenhand.trial.measurer import RFC_WAITS, SHORT_WAITS, EngineMeasurer, Limits, Measurer, Waits
from evenhand.trial.result import CONTRACT, Deviation, DirectionResult, Reason, TrialResult, Verdict
from evenhand.trial.simulated import SimulatedMeasurer

__all__ = [
    "CONTRACT",
    "RFC_WAITS",
    "SHORT_WAITS",
    "Deviation",
    "DirectionResult",
    "EngineMeasurer",
    "EngineSession",
    "Limits",
    "Measurer",
    "Reason",
    "SimulatedMeasurer",
    "TrialResult",
    "Verdict",
    "Waits",
    "find_engine",
]
