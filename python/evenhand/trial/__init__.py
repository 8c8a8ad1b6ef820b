# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: one trial, by the engine or simulated, and what it says."""

from evenhand.trial.causes import (
    causes_of_invalid,
    describe_causes,
    describe_reasons,
    describe_taken,
    join_directions,
)
from evenhand.trial.clean_time import LAPSES, CleanCounts, CleanTime, LeftOut
from evenhand.trial.direction import ClassCount, Delays, DirectionResult, LostFrame, Variation
from evenhand.trial.engine_group import DEFAULT_START_DIFFERENCE_US, EngineGroup
from evenhand.trial.engine_session import EngineSession
from evenhand.trial.find_engine import find_engine
from evenhand.trial.group_clocks import ComparedClock
from evenhand.trial.group_request import EngineMember
from evenhand.trial.learning import (
    DEFAULT_RATE_FPS,
    DEFAULT_ROUNDS,
    DEFAULT_WAIT_S,
    LearnedSide,
    LearningProgress,
    LearningResult,
    learn,
    name_first,
)
from evenhand.trial.load import Burst, Connections, Load, LoadChange, LoadMeasurer
from evenhand.trial.measurer import (
    CEILING_WAITS,
    CLEAN_AT_MOST,
    LARGEST_SEED,
    MOST_OFFERED_TOLERANCE,
    RFC_WAITS,
    SHORT_WAITS,
    USUAL_OVERDUE_AFTER_US,
    DelayWish,
    EarlyStopper,
    EngineMeasurer,
    Limits,
    Measurer,
    Waits,
)
from evenhand.trial.proof import MAX_PROOF_FRAMES, Generator, StreamProof
from evenhand.trial.replay import Replay, was_offered
from evenhand.trial.result import (
    CONTRACT,
    ClockOffset,
    Deviation,
    Reason,
    TakenCpu,
    TrialResult,
    Verdict,
    WatchedCpu,
    read_clock_offsets,
)
from evenhand.trial.seen_flow import SeenFlow
from evenhand.trial.simulated import SimulatedMeasurer
from evenhand.trial.tester_session import TesterSession
from evenhand.trial.time_left_out import TIME_LEFT_OUT, TimeLeftOut, read_time_left_out, show_share
from evenhand.trial.watch import DEFAULT_WATCH_S, CpuStalls, Watch, WatchedClock, watch

__all__ = [
    "CEILING_WAITS",
    "CLEAN_AT_MOST",
    "CONTRACT",
    "DEFAULT_RATE_FPS",
    "DEFAULT_ROUNDS",
    "DEFAULT_START_DIFFERENCE_US",
    "DEFAULT_WAIT_S",
    "DEFAULT_WATCH_S",
    "LAPSES",
    "LARGEST_SEED",
    "MAX_PROOF_FRAMES",
    "MOST_OFFERED_TOLERANCE",
    "RFC_WAITS",
    "SHORT_WAITS",
    "TIME_LEFT_OUT",
    "USUAL_OVERDUE_AFTER_US",
    "Burst",
    "ClassCount",
    "CleanCounts",
    "CleanTime",
    "ClockOffset",
    "ComparedClock",
    "Connections",
    "CpuStalls",
    "DelayWish",
    "Delays",
    "Deviation",
    "DirectionResult",
    "EarlyStopper",
    "EngineGroup",
    "EngineMeasurer",
    "EngineMember",
    "EngineSession",
    "Generator",
    "LearnedSide",
    "LearningProgress",
    "LearningResult",
    "LeftOut",
    "Limits",
    "Load",
    "LoadChange",
    "LoadMeasurer",
    "LostFrame",
    "Measurer",
    "Reason",
    "Replay",
    "SeenFlow",
    "SimulatedMeasurer",
    "StreamProof",
    "TakenCpu",
    "TesterSession",
    "TimeLeftOut",
    "TrialResult",
    "Variation",
    "Verdict",
    "Waits",
    "Watch",
    "WatchedClock",
    "WatchedCpu",
    "causes_of_invalid",
    "describe_causes",
    "describe_reasons",
    "describe_taken",
    "find_engine",
    "join_directions",
    "learn",
    "name_first",
    "read_clock_offsets",
    "read_time_left_out",
    "show_share",
    "was_offered",
    "watch",
]
