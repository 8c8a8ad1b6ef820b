# SPDX-License-Identifier: Apache-2.0
"""Station 10: whether a port stamps arriving frames itself, in words. Apart from what else a check reports,
which takes long to load: who shows a delay needs only this."""

STAMPS = {"none": "not on this port", "unused": "on this port, not used"}
"""Stamps of arriving frames, by what the engine says."""
