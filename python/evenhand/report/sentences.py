# SPDX-License-Identifier: Apache-2.0
"""Station 10: explanations that several reports give in the same words."""

from __future__ import annotations

WHY_BOUND = "the highest load that was tried passed, or the tester could not keep a higher one"
"""Why a number is a lower bound."""
