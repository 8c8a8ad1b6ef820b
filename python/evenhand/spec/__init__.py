# SPDX-License-Identifier: Apache-2.0
"""Specification, above the procedures: what a command line, a campaign file or a run file asks for, read the
same way wherever it is written."""
