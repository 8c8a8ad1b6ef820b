# SPDX-License-Identifier: Apache-2.0
"""The command `evenhand`. Outside the package, which takes a second to load: Ctrl-C in that second leaves no
trace either."""

import sys

INTERRUPTED = 130


def run() -> None:
    """Entry point."""
    try:
        if sys.argv[1:] == ["--version"]:  # which other programs ask often: without a verb, and at once
            from evenhand.cli.version import show_version

            sys.exit(show_version())
        from evenhand.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
