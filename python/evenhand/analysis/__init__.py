# SPDX-License-Identifier: Apache-2.0
"""Analysis, beside station 9: what the points of a campaign say together. Reads records, runs nothing."""

from evenhand.analysis.facade import analyse
from evenhand.analysis.model import (
    Analysis,
    BiasVerdict,
    Curve,
    CurveKey,
    CurvePoint,
    Degradation,
    MedianRatio,
    PointTest,
    PublishedComparison,
    PublishedRow,
    Ratio,
    Shape,
)

__all__ = [
    "Analysis",
    "BiasVerdict",
    "Curve",
    "CurveKey",
    "CurvePoint",
    "Degradation",
    "MedianRatio",
    "PointTest",
    "PublishedComparison",
    "PublishedRow",
    "Ratio",
    "Shape",
    "analyse",
]
