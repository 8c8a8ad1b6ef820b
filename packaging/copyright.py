#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the copyright file of the package evenhand: Evenhand's own, and a paragraph for each Python package
in the virtualenv.

packaging/copyright.py VIRTUALENV OWN-COPYRIGHT-FILE
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

PREFIX = Path("/usr/lib/evenhand")
"""Where the virtualenv will be."""


def licence_of(package: PathDistribution) -> str:
    """One line: the SPDX expression, else the classifiers, else the first line of the field."""
    classifiers = [
        name.split(" :: ")[-1]
        for name in package.metadata.get_all("Classifier") or []
        if name.startswith("License :: ")
    ]
    text = next(iter(_field(package, "License").strip().splitlines()), "")
    return _field(package, "License-Expression") or " or ".join(classifiers) or text or "see below"


def _field(package: PathDistribution, name: str) -> str:
    """The first of this name; empty if there is none."""
    return next(iter(package.metadata.get_all(name) or []), "")


def paragraph(info: Path, virtualenv: Path) -> str:
    """Of one package: its files, its licence in short, where the text is."""
    package = PathDistribution(info)
    texts = [
        path
        for path in sorted(info.rglob("*"))
        if re.match(r"(?i)licen[cs]e|copying|notice", path.name) and path.is_file()
    ]
    lines = [
        f"Files: {PREFIX / info.relative_to(virtualenv)}",
        f"Comment: {package.metadata['Name']} {package.version}, a wheel of its authors, unchanged",
    ]
    authors = _field(package, "Author") or _field(package, "Author-email") or "its authors"
    lines += [f"Copyright: {authors}".splitlines()[0]]
    lines += [f"License: {info.name.removesuffix('.dist-info')}", f" {licence_of(package)}"]
    lines += [f" {PREFIX / path.relative_to(virtualenv)}" for path in texts]
    return "\n".join(lines)


def main(virtualenv: Path, own: Path) -> None:
    """Print it."""
    infos = sorted(
        path
        for path in virtualenv.glob("lib/python3*/site-packages/*.dist-info")
        if not path.name.startswith("evenhand-")
    )
    print(
        "\n\n".join(
            [own.read_text(encoding="utf-8").rstrip(), *(paragraph(info, virtualenv) for info in infos)]
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
