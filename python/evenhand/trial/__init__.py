# SPDX-License-Identifier: Apache-2.0
"""Station 7, trial result: one trial, by the engine or simulated, and what it says."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.trial.capture import CaptureFile, capture_file
    from evenhand.trial.causes import (
        TIME_LEFT_OUT,
        TimeLeftOut,
        causes_of_invalid,
        describe_causes,
        describe_reasons,
        describe_taken,
        join_directions,
        read_time_left_out,
        show_share,
    )
    from evenhand.trial.clean_time import LAPSES, CleanCounts, CleanTime, LeftOut
    from evenhand.trial.direction import ClassCount, Delays, DirectionResult, LostFrame, SeenFlow, Variation
    from evenhand.trial.direction_rates import DirectionRates, read_direction_rates
    from evenhand.trial.engine_group import DEFAULT_START_DIFFERENCE_US, EngineGroup
    from evenhand.trial.engine_process import find_engine
    from evenhand.trial.engine_session import EngineSession, TesterSession
    from evenhand.trial.group_parts import ComparedClock, EngineMember
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
    from evenhand.trial.simulated import SimulatedMeasurer
    from evenhand.trial.watch import DEFAULT_WATCH_S, CpuStalls, Watch, WatchedClock
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "capture": ("CaptureFile", "capture_file"),
            "causes": (
                "TIME_LEFT_OUT",
                "TimeLeftOut",
                "causes_of_invalid",
                "describe_causes",
                "describe_reasons",
                "describe_taken",
                "join_directions",
                "read_time_left_out",
                "show_share",
            ),
            "clean_time": ("LAPSES", "CleanCounts", "CleanTime", "LeftOut"),
            "direction": ("ClassCount", "Delays", "DirectionResult", "LostFrame", "SeenFlow", "Variation"),
            "direction_rates": ("DirectionRates", "read_direction_rates"),
            "engine_group": ("DEFAULT_START_DIFFERENCE_US", "EngineGroup"),
            "engine_process": ("find_engine",),
            "engine_session": ("EngineSession", "TesterSession"),
            "group_parts": ("ComparedClock", "EngineMember"),
            "learning": (
                "DEFAULT_RATE_FPS",
                "DEFAULT_ROUNDS",
                "DEFAULT_WAIT_S",
                "LearnedSide",
                "LearningProgress",
                "LearningResult",
                "learn",
                "name_first",
            ),
            "load": ("Burst", "Connections", "Load", "LoadChange", "LoadMeasurer"),
            "measurer": (
                "CEILING_WAITS",
                "CLEAN_AT_MOST",
                "LARGEST_SEED",
                "MOST_OFFERED_TOLERANCE",
                "RFC_WAITS",
                "SHORT_WAITS",
                "USUAL_OVERDUE_AFTER_US",
                "DelayWish",
                "EarlyStopper",
                "EngineMeasurer",
                "Limits",
                "Measurer",
                "Waits",
            ),
            "proof": ("MAX_PROOF_FRAMES", "Generator", "StreamProof"),
            "replay": ("Replay", "was_offered"),
            "result": (
                "CONTRACT",
                "ClockOffset",
                "Deviation",
                "Reason",
                "TakenCpu",
                "TrialResult",
                "Verdict",
                "WatchedCpu",
                "read_clock_offsets",
            ),
            "simulated": ("SimulatedMeasurer",),
            "watch": ("DEFAULT_WATCH_S", "CpuStalls", "Watch", "WatchedClock"),
        },
    )


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
    "CaptureFile",
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
    "DirectionRates",
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
    "capture_file",
    "causes_of_invalid",
    "describe_causes",
    "describe_reasons",
    "describe_taken",
    "find_engine",
    "join_directions",
    "learn",
    "name_first",
    "read_clock_offsets",
    "read_direction_rates",
    "read_time_left_out",
    "show_share",
    "was_offered",
]
