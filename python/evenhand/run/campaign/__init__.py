# SPDX-License-Identifier: Apache-2.0
"""Station 9, run: the points of a campaign, measured in turn. The rest of `run` reads and writes records."""
