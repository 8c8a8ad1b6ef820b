# SPDX-License-Identifier: Apache-2.0
"""Campaign, above the procedures: what a campaign file asks for, point by point."""
