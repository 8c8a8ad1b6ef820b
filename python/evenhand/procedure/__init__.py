# SPDX-License-Identifier: Apache-2.0
"""Procedure, between search and series: what a test is: its trials, its repetitions, its figures. Knows a
tester; shows nothing."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.procedure.back_to_back import measure_back_to_back
    from evenhand.procedure.back_to_back_result import (
        BackToBack,
        BackToBackGoal,
        BackToBackTable,
        BurstSearch,
    )
    from evenhand.procedure.burst import BurstGoal, BurstInterval, BurstIntervals, measure_burst
    from evenhand.procedure.cable_test import CableState, CableTest, measure_cable
    from evenhand.procedure.conditions import Conditions
    from evenhand.procedure.connection_capacity import Capacity, CapacityStep
    from evenhand.procedure.connection_capacity_goal import CapacityGoal
    from evenhand.procedure.connection_rate import ConnectionRate, ConnectionRateGoal
    from evenhand.procedure.connection_trials import ConnectionWish, OrderName
    from evenhand.procedure.delay import measure_delay
    from evenhand.procedure.delay_result import DelayResult
    from evenhand.procedure.events import (
        Began,
        Learned,
        Measured,
        Note,
        OnEvent,
        ProcedureEvent,
        TrialPhase,
        ignore,
    )
    from evenhand.procedure.host_limits import HostLimits, measure_host_limits
    from evenhand.procedure.learning import (
        ALL_HOSTS_FIRST,
        DEFAULT_FRAME_SIZE,
        FRAME_SIZE_SETS,
        JUMBO_FRAME_SIZES,
        MAX_FRAME_SIZE,
        RFC8219_FRAME_SIZES,
        RFC_FRAME_SIZES,
        USUAL_MAX_FRAME_SIZE,
        LearningChoice,
        check_reachable,
        choose_frame_size,
        choose_frames,
        learn_first,
    )
    from evenhand.procedure.limits import limits_of, retries_of
    from evenhand.procedure.loss import FrameLoss, LossPoint, LossTable, measure_loss
    from evenhand.procedure.maximum import DUT_WAY, OWN_LOOP_WAY, CeilingEntry, CeilingGoal, measure_ceiling
    from evenhand.procedure.one_pair import OMISSION, OnePair, check_same_dut, says_something
    from evenhand.procedure.own_loop import OwnLoop, measure_own_loop
    from evenhand.procedure.profile import Profile, WorstTesterFigures, collect_deviations
    from evenhand.procedure.record import Recorder, SearchRecord
    from evenhand.procedure.recovery import Recovery, measure_recovery
    from evenhand.procedure.repetition import Repetitions, Row, check_frame_sizes, check_whole_sizes, repeat
    from evenhand.procedure.single_trial import SingleTrial, measure_trial
    from evenhand.procedure.statistics import Interval, Statistics
    from evenhand.procedure.tear_down import TearDown, TearDownGoal
    from evenhand.procedure.testbed import OpenTestbed
    from evenhand.procedure.tester import OpenTester, choose_maximum, open_tester
    from evenhand.procedure.throughput import (
        UP_TO_LINE_RATE,
        Throughput,
        ThroughputTable,
        measure_throughput,
        search_deviations,
        throughput_document,
    )
    from evenhand.results.connections import CapacityOutcome, Removal
    from evenhand.results.delay import DelayGoal, DelayTest
    from evenhand.results.loss import LossGoal, LossOutcome
    from evenhand.results.recovery import RecoveryGoal
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "back_to_back": ("measure_back_to_back",),
            "back_to_back_result": ("BackToBack", "BackToBackGoal", "BackToBackTable", "BurstSearch"),
            "burst": ("BurstGoal", "BurstInterval", "BurstIntervals", "measure_burst"),
            "cable_test": ("CableState", "CableTest", "measure_cable"),
            "conditions": ("Conditions",),
            "connection_capacity": ("Capacity", "CapacityOutcome", "CapacityStep"),
            "connection_capacity_goal": ("CapacityGoal",),
            "connection_rate": ("ConnectionRate", "ConnectionRateGoal"),
            "connection_trials": ("ConnectionWish", "OrderName"),
            "delay": ("measure_delay",),
            "delay_result": ("DelayGoal", "DelayResult", "DelayTest"),
            "events": (
                "Began",
                "Learned",
                "Measured",
                "Note",
                "OnEvent",
                "ProcedureEvent",
                "TrialPhase",
                "ignore",
            ),
            "host_limits": ("HostLimits", "measure_host_limits"),
            "learning": (
                "ALL_HOSTS_FIRST",
                "DEFAULT_FRAME_SIZE",
                "FRAME_SIZE_SETS",
                "JUMBO_FRAME_SIZES",
                "MAX_FRAME_SIZE",
                "RFC8219_FRAME_SIZES",
                "RFC_FRAME_SIZES",
                "USUAL_MAX_FRAME_SIZE",
                "LearningChoice",
                "check_reachable",
                "choose_frame_size",
                "choose_frames",
                "learn_first",
            ),
            "limits": ("limits_of", "retries_of"),
            "loss": ("FrameLoss", "LossGoal", "LossOutcome", "LossPoint", "LossTable", "measure_loss"),
            "maximum": ("DUT_WAY", "OWN_LOOP_WAY", "CeilingEntry", "CeilingGoal", "measure_ceiling"),
            "own_loop": ("OwnLoop", "measure_own_loop"),
            "profile": ("Profile", "WorstTesterFigures", "collect_deviations"),
            "record": ("Recorder", "SearchRecord"),
            "recovery": ("Recovery", "RecoveryGoal", "measure_recovery"),
            "repetition": ("Repetitions", "Row", "check_frame_sizes", "check_whole_sizes", "repeat"),
            "one_pair": ("OMISSION", "OnePair", "check_same_dut", "says_something"),
            "single_trial": ("SingleTrial", "measure_trial"),
            "statistics": ("Interval", "Statistics"),
            "tear_down": ("Removal", "TearDown", "TearDownGoal"),
            "testbed": ("OpenTestbed",),
            "tester": ("OpenTester", "choose_maximum", "open_tester"),
            "throughput": (
                "UP_TO_LINE_RATE",
                "Throughput",
                "ThroughputTable",
                "measure_throughput",
                "search_deviations",
                "throughput_document",
            ),
        },
    )


__all__ = [
    "ALL_HOSTS_FIRST",
    "DEFAULT_FRAME_SIZE",
    "DUT_WAY",
    "FRAME_SIZE_SETS",
    "JUMBO_FRAME_SIZES",
    "MAX_FRAME_SIZE",
    "OMISSION",
    "OWN_LOOP_WAY",
    "RFC8219_FRAME_SIZES",
    "RFC_FRAME_SIZES",
    "UP_TO_LINE_RATE",
    "USUAL_MAX_FRAME_SIZE",
    "BackToBack",
    "BackToBackGoal",
    "BackToBackTable",
    "Began",
    "BurstGoal",
    "BurstInterval",
    "BurstIntervals",
    "BurstSearch",
    "CableState",
    "CableTest",
    "Capacity",
    "CapacityGoal",
    "CapacityOutcome",
    "CapacityStep",
    "CeilingEntry",
    "CeilingGoal",
    "Conditions",
    "ConnectionRate",
    "ConnectionRateGoal",
    "ConnectionWish",
    "DelayGoal",
    "DelayResult",
    "DelayTest",
    "FrameLoss",
    "HostLimits",
    "Interval",
    "Learned",
    "LearningChoice",
    "LossGoal",
    "LossOutcome",
    "LossPoint",
    "LossTable",
    "Measured",
    "Note",
    "OnEvent",
    "OnePair",
    "OpenTestbed",
    "OpenTester",
    "OrderName",
    "OwnLoop",
    "ProcedureEvent",
    "Profile",
    "Recorder",
    "Recovery",
    "RecoveryGoal",
    "Removal",
    "Repetitions",
    "Row",
    "SearchRecord",
    "SingleTrial",
    "Statistics",
    "TearDown",
    "TearDownGoal",
    "Throughput",
    "ThroughputTable",
    "TrialPhase",
    "WorstTesterFigures",
    "check_frame_sizes",
    "check_reachable",
    "check_same_dut",
    "check_whole_sizes",
    "choose_frame_size",
    "choose_frames",
    "choose_maximum",
    "collect_deviations",
    "ignore",
    "learn_first",
    "limits_of",
    "measure_back_to_back",
    "measure_burst",
    "measure_cable",
    "measure_ceiling",
    "measure_delay",
    "measure_host_limits",
    "measure_loss",
    "measure_own_loop",
    "measure_recovery",
    "measure_throughput",
    "measure_trial",
    "open_tester",
    "repeat",
    "retries_of",
    "says_something",
    "search_deviations",
    "throughput_document",
]
