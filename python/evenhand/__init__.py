# SPDX-License-Identifier: Apache-2.0
"""Evenhand: an even-handed benchmark for routers."""

__all__ = ["__version__"]

__version__ = "0.1.0"
