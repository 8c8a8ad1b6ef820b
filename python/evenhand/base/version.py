# SPDX-License-Identifier: Apache-2.0
"""The version of this package, for every room that writes it into a document."""

VERSION = "0.1.0"
