#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes requirements-package.lock: what of requirements.lock goes into the Debian package, with the hashes
of its wheels.

tools/lock-dependencies runs it with pip's Python. The hashes are those that the registry gives for the wheels
of Debian 12 (Python 3.11) and Debian 13 (3.13) on amd64 and arm64. pip refuses a file with another one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-package.lock"
PYTHONS = ("3.11", "3.13")
MACHINES = ("x86_64", "aarch64")
# What the C library of Debian 12 (2.36) takes.
PLATFORMS = (
    "manylinux_2_34",
    "manylinux_2_31",
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux_2_17",
    "manylinux2014",
)
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Written by tools/lock-dependencies: what of requirements.lock the Debian package brings along, with the
# hashes of its wheels.
"""


def wheels(python: str, machine: str) -> list[dict[str, Any]]:
    """What pip would install there of what pyproject.toml asks for; nothing is installed."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--report",
            str(report),
        ]
        command += [
            "--target",
            folder,
            "--only-binary=:all:",
            "--python-version",
            python,
            "--constraint",
            str(ROOT / "requirements.lock"),
        ]
        for platform in PLATFORMS:
            command += ["--platform", f"{platform}_{machine}"]
        subprocess.run([*command, *wanted], check=True)
        installed: list[dict[str, Any]] = json.loads(report.read_text())["install"]
        return installed


def main() -> None:
    """Write the lock."""
    hashes: dict[str, set[str]] = {}
    for python in PYTHONS:
        for machine in MACHINES:
            for wheel in wheels(python, machine):
                name = f"{wheel['metadata']['name']}=={wheel['metadata']['version']}"
                hashes.setdefault(name, set()).add(wheel["download_info"]["archive_info"]["hashes"]["sha256"])
    lines = [
        " \\\n    ".join([name, *(f"--hash=sha256:{value}" for value in sorted(hashes[name]))])
        for name in sorted(hashes, key=str.casefold)
    ]
    LOCK.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
