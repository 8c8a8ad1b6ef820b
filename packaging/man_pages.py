#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages from the command line's own help texts, as docs/reference/generate_cli.py writes its
page.

One for `evenhand`, one for each verb (`man evenhand-throughput`, or `man evenhand throughput`), one for each
program of the data plane. The verb `router` and the program evenhand-router share a page.

    packaging/man_pages.py FOLDER
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from typer.main import get_command

import evenhand
from evenhand.cli.main import app_of

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("evenhand-engine", "evenhand-router")
"""Their sections are written by hand: packaging/man/NAME.section. They are in the package evenhand-engine,
the other pages in evenhand."""
DOCUMENTS = "/usr/share/doc/evenhand"


def pages() -> dict[str, str]:
    """File name to page."""
    root = get_command(app_of())
    verbs: dict[str, Any] = dict(sorted(root.commands.items()))  # type: ignore[attr-defined]
    made = {"evenhand.1": _front_page(root, verbs)}
    for name, command in verbs.items():
        own = _section_of("evenhand-router") if name == "router" else ""
        made[f"evenhand-{name}.1"] = (
            _title(f"evenhand-{name}", command.help)
            + _command(f"evenhand {name}", command, level="SH")
            + own
            + _see_also()
        )
    engine = "tester's data plane: sends and receives frames on DPDK ports."
    made["evenhand-engine.1"] = (
        _title("evenhand-engine", engine) + _section_of("evenhand-engine") + _see_also()
    )
    return made


def _front_page(root: Any, verbs: dict[str, Any]) -> str:
    text = _title("evenhand", root.help)
    text += _heading("SYNOPSIS") + "\\fBevenhand\\fR [\\fIoptions\\fR] \\fIverb\\fR ...\n"
    text += _heading("DESCRIPTION") + _roff(
        "Each verb has its own page: man evenhand-throughput. Results go to stdout, progress and notes to"
        " stderr. An error is three lines "
        "on stderr: what is wrong, where, what to do next."
    )
    text += _heading("VERBS") + "".join(
        _entry(_bold(name), _first_sentence(command.help)) for name, command in verbs.items()
    )
    text += _heading("OPTIONS") + _options(root)
    values, codes = _tables(_cli_page().HEAD)
    text += _heading("VALUES") + "".join(_entry(_bold(name), forms) for name, forms in values)
    text += _heading("EXIT STATUS") + "".join(_entry(_bold(code), meaning) for code, meaning in codes)
    text += _heading("ENVIRONMENT")
    text += _entry(
        _bold("EVENHAND_ENGINE"), "The engine, where --engine names none; else it is looked for on PATH."
    )
    text += _entry(_bold("EVENHAND_ROUTER"), "The reference router, in the same way.")
    text += _heading("FILES") + _entry(
        _bold(f"{DOCUMENTS}/examples"), "Testbed files and campaigns, to be copied."
    )
    text += _entry(_bold(f"{DOCUMENTS}/docs"), "Tutorials, how-tos, reference and explanations.")
    return (
        text
        + _heading("SEE ALSO")
        + ",\n".join(f".BR evenhand\\-{name} (1)" for name in [*verbs, "engine"]).replace(",\n", " ,\n")
        + "\n"
    )


def _command(name: str, command: Any, *, level: str) -> str:
    inner = getattr(command, "commands", None)
    arguments = [parameter for parameter in command.params if not _is_option(parameter)]
    shown = " ".join(f"\\fI{_escaped(_name_of(argument))}\\fR" for argument in arguments)
    text = ""
    if inner is None:
        usage = f"{_bold(name)} [\\fIoptions\\fR] {shown}".rstrip() + "\n"
        text += _heading("SYNOPSIS") + usage if level == "SH" else usage + ".PP\n"
    else:
        text += _heading("SYNOPSIS") + f"{_bold(name)} \\fIverb\\fR ...\n"
    text += _heading("DESCRIPTION") if level == "SH" else ""
    text += "".join(
        _roff(" ".join(paragraph.split())) + ".PP\n"
        for paragraph in re.split(r"\n\s*\n", command.help or "")
        if paragraph.strip()
    )
    if command.params:
        text += (_heading("OPTIONS") if level == "SH" else "") + _options(command)
    if command.epilog and inner is None:
        example = command.epilog.removeprefix("Example: ")
        text += (
            _heading("EXAMPLE") if level == "SH" else ".PP\nExample:\n"
        ) + f".PP\n.nf\n{_roff(example)}.fi\n"
    for inner_name, inner_command in sorted((inner or {}).items()):
        text += _heading(f"{name} {inner_name}") + _command(f"{name} {inner_name}", inner_command, level="SS")
    return text


def _options(command: Any) -> str:
    text = ""
    for parameter in command.params:
        if parameter.name.endswith("completion"):
            continue
        name = _name_of(parameter)
        if _is_option(parameter):
            names = ", ".join(_bold(option) for option in [*parameter.opts, *parameter.secondary_opts])
            shown = names if parameter.is_flag else f"{names} \\fI{_escaped(name)}\\fR"
        else:
            shown = f"\\fI{_escaped(name)}\\fR"
        default = _cli_page().default_of(parameter)
        note = (
            " Required."
            if parameter.required and _is_option(parameter)
            else f" Default: {default}."
            if default is not None
            else ""
        )
        text += _entry(shown, (parameter.help or "") + note)
    return text


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _name_of(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper().replace("_", "-"))


def _title(name: str, help_text: str) -> str:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", (ROOT / "CHANGELOG.md").stat().st_mtime))
    date = datetime.fromtimestamp(epoch, tz=UTC).date()
    head = '.\\" SPDX-License-Identifier: Apache-2.0\n.\\" Written by packaging/man_pages.py.\n'
    head += f'.TH {name.upper()} 1 "{date}" "Evenhand {evenhand.__version__}" "User Commands"\n'
    return (
        head
        + _heading("NAME")
        + f"{_escaped(name)} \\- {_escaped(_first_sentence(help_text).removesuffix('.'))}\n"
    )


def _section_of(program: str) -> str:
    return (ROOT / "packaging" / "man" / f"{program}.section").read_text(encoding="utf-8")


def _see_also() -> str:
    return _heading("SEE ALSO") + ".BR evenhand (1)\n"


def _heading(text: str) -> str:
    return f'.SH "{_escaped(text)}"\n'


def _entry(term: str, text: str) -> str:
    return f".TP\n{term}\n{_roff(' '.join(text.split()))}"


def _bold(text: str) -> str:
    return f"\\fB{_escaped(text)}\\fR"


def _first_sentence(text: str) -> str:
    """With its full stop; `e.g.` and `26.1)` end none."""
    sentence = re.split(r"(?<=[a-z)%])\. (?=[A-Z])", " ".join((text or "").split("\n\n")[0].split()))[0]
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _roff(text: str) -> str:
    """Lines of text; what Markdown has in backticks is bold."""
    lines = [
        re.sub(r"`([^`]*)`", lambda found: f"\\fB{found[1]}\\fR", _escaped(line))
        for line in text.splitlines()
    ]
    return "".join(f"\\&{line}\n" if line.startswith((".", "'")) else f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def _tables(markdown: str) -> list[list[tuple[str, str]]]:
    """The rows of tables with two columns, without links and headings."""
    tables: list[list[tuple[str, str]]] = []
    for block in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        rows = [re.split(r"(?<!\\)\|", line)[1:3] for line in block.splitlines()[2:]]
        tables.append(
            [
                (name.strip(), re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text.strip()).replace("\\|", "|"))
                for name, text in rows
            ]
        )
    return tables


def _cli_page() -> ModuleType:
    """docs/reference/generate_cli.py, which has the forms of values and the exit codes."""
    specification = importlib.util.spec_from_file_location(
        "generate_cli", ROOT / "docs" / "reference" / "generate_cli.py"
    )
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def main(folder: Path) -> None:
    """Write all pages, those of the programs' package into a folder of their own."""
    for name, page in pages().items():
        package = "evenhand-engine" if name.removesuffix(".1") in PROGRAMS else "evenhand"
        (folder / package).mkdir(parents=True, exist_ok=True)
        (folder / package / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
