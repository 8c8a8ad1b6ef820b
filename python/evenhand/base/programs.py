# SPDX-License-Identifier: Apache-2.0
"""Where the programs of the data plane are: the engine and the reference router."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.errors import HostError

CHECKOUT = Path(__file__).resolve().parents[3]
"""The checkout that this package runs from, if it does (`is_checkout`); some folder of the system where it is
installed."""


def is_checkout(folder: Path | None = None) -> bool:
    """Whether this package runs from its checkout, where `make build` makes the programs. Else it is
    installed, and so are they."""
    return ((folder or CHECKOUT) / "meson.build").is_file()


def in_checkout(words: str, *, installed: str) -> str:
    """What to advise people to do: verbs of the Makefile only where there is one."""
    return words if is_checkout() else installed


def how_to_get_programs() -> str:
    """A sentence without its full stop."""
    return in_checkout(
        "Run `make build`", installed="Install the package evenhand-engine of the same version"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that `make build` makes, and the Debian package evenhand-engine installs."""

    name: str
    variable: str
    """Environment variable that may name it."""
    option: str
    """Option of the command line that may name it."""
    checkout: Path
    """Where the build puts it when this package runs from its checkout."""


ENGINE = Program(
    name="evenhand-engine",
    variable="EVENHAND_ENGINE",
    option="--engine",
    checkout=CHECKOUT / "build" / "engine" / "evenhand-engine",
)
ROUTER = Program(
    name="evenhand-router",
    variable="EVENHAND_ROUTER",
    option="--router",
    checkout=CHECKOUT / "build" / "router" / "evenhand-router",
)


def find_program(
    program: Program, option: Path | None = None, *, environment: Mapping[str, str] | None = None
) -> Path:
    """The program named by its option, else by its variable, else the checkout's, else the one on PATH.

    Raises:
        HostError: There is none, or the one that was named cannot be run.
    """
    environment = os.environ if environment is None else environment
    if option is not None:
        return _named(program, option, program.option)
    if environment.get(program.variable):
        return _named(program, Path(environment[program.variable]), program.variable)
    if _is_executable(program.checkout):
        return program.checkout
    on_path = shutil.which(program.name, path=environment.get("PATH"))
    if on_path is None:
        raise HostError(
            f"{program.name} was not found",
            code="base.program-missing",
            where=in_checkout(f"{program.checkout}, PATH", installed="PATH"),
            next_step=(
                f"{how_to_get_programs()}, or give its path with {program.option} or {program.variable}."
            ),
        )
    return Path(on_path)


def _named(program: Program, path: Path, where: str) -> Path:
    if not path.exists():
        raise HostError(
            f"{path} does not exist",
            code="base.program-missing",
            where=where,
            next_step=f"{how_to_get_programs()}, or name another.",
        )
    if not _is_executable(path):
        raise HostError(
            f"{path} is not an executable file",
            code="base.program-not-executable",
            where=where,
            next_step=f"Name an {program.name}.",
        )
    return path.resolve()


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
