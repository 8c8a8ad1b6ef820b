# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan` with all its verbs, which are in files of their own."""

from __future__ import annotations

from evenhand.cli import plan_export, prove
from evenhand.cli.plan import app

app.command("prove", epilog=prove.EXAMPLE)(prove.prove)
app.command("export", epilog=plan_export.EXAMPLE)(plan_export.export_plan)
