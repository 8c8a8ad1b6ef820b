# SPDX-License-Identifier: Apache-2.0
"""Analysis, beside station 9: what the points of a campaign say together. Reads records, runs nothing."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.analysis.comparison import compare, compare_sessions
    from evenhand.analysis.comparison_model import (
        ComparedRun,
        ComparedValue,
        Comparison,
        PointComparison,
        SetupDifference,
    )
    from evenhand.analysis.curve_model import Curve, CurveKey, CurvePoint, Degradation, PointTest, Shape
    from evenhand.analysis.medians import MedianRatio
    from evenhand.analysis.model import (
        Analysis,
        BedDifference,
        BedsVerdict,
        BiasVerdict,
        PublishedComparison,
        PublishedRow,
        Ratio,
    )
    from evenhand.analysis.testbeds import compare_testbeds, values_by_testbed
    from evenhand.analysis.whole import analyse
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "whole": ("analyse",),
            "comparison": ("compare", "compare_sessions"),
            "comparison_model": (
                "ComparedRun",
                "ComparedValue",
                "Comparison",
                "PointComparison",
                "SetupDifference",
            ),
            "curve_model": ("Curve", "CurveKey", "CurvePoint", "Degradation", "PointTest", "Shape"),
            "medians": ("MedianRatio",),
            "model": (
                "Analysis",
                "BedDifference",
                "BedsVerdict",
                "BiasVerdict",
                "PublishedComparison",
                "PublishedRow",
                "Ratio",
            ),
            "testbeds": ("compare_testbeds", "values_by_testbed"),
        },
    )

__all__ = [
    "Analysis",
    "BedDifference",
    "BedsVerdict",
    "BiasVerdict",
    "ComparedRun",
    "ComparedValue",
    "Comparison",
    "Curve",
    "CurveKey",
    "CurvePoint",
    "Degradation",
    "MedianRatio",
    "PointComparison",
    "PointTest",
    "PublishedComparison",
    "PublishedRow",
    "Ratio",
    "SetupDifference",
    "Shape",
    "analyse",
    "compare",
    "compare_sessions",
    "compare_testbeds",
    "values_by_testbed",
]
