# SPDX-License-Identifier: Apache-2.0
"""Station 10, report: tables and documents of results; never runs anything."""
