# SPDX-License-Identifier: Apache-2.0
"""`python -m evenhand`: the same as the command `evenhand`."""

from evenhand_command import run

run()
