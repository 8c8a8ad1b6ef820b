# SPDX-License-Identifier: Apache-2.0
"""`evenhand --version`, which loads no verb."""

from __future__ import annotations

import sys

from evenhand.base.errors import OutputError
from evenhand.base.version import VERSION
from evenhand.cli import streams


def show_version() -> int:
    """Print the version; the exit code."""
    streams.guard()
    try:
        print(f"evenhand {VERSION}")
        sys.stdout.flush()
    except OutputError as error:
        streams.drop()
        if error.is_closed_pipe:
            return streams.BROKEN_PIPE
        from evenhand.cli.error_output import report_error

        return report_error(error, None, is_json=False, is_debug=False)
    return 0
