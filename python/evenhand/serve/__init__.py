# SPDX-License-Identifier: Apache-2.0
"""Beside 10: a folder of runs in a browser. Reads run files and what runs write beside them; starts nothing,
and changes no run."""
