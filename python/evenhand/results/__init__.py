# SPDX-License-Identifier: Apache-2.0
"""Results, below procedures: what a procedure is asked for and what it found, each as one type that writes
and reads its document."""
