# SPDX-License-Identifier: Apache-2.0
"""Campaigns that have a name: TOML files in this folder, and how a user's file is laid over one of them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from evenhand.base.errors import RequestError, shortened, suggestion

PRESET_PREFIX = "preset:"
"""Prefix of the name of a preset, where a file may be named."""
EVERY_SUITE = "every-suite"
"""A table whose keys all suites have that do not have them themselves."""
NOT_STATED = "not-stated"
"""The value of a key that is as if it were not there: so a key of a preset can be taken out."""


def preset_names() -> list[str]:
    """Names of presets in alphabetical order."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in files(__name__).iterdir()
        if entry.name.endswith(".toml")
    )


def preset_text(name: str, *, where: str = "preset") -> str:
    """The TOML file itself, to be read and copied. RequestError names the presets there are."""
    names = preset_names()
    if name not in names:
        near = suggestion(name, names)
        raise RequestError(
            f"there is no preset {name!r}",
            code="spec.no-such-preset",
            where=where,
            next_step=f"Did you mean {near!r}? " * bool(near) + f"There are: {', '.join(names)}.",
        )
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def apply_preset(document: dict[str, Any], *, where: str, preset_where: str | None = None) -> dict[str, Any]:
    """The whole campaign: the user's document over its preset, and `[every-suite]` laid out; keys with `-`.

    What the user writes for a suite that the preset has by this name changes that suite; other suites are
    added. The user's `[every-suite]` goes before the preset's own `[every-suite]`, but not before what the
    preset says of a single suite: one address pair stays one (`unheeded` says where). The value "not-stated"
    takes a key out, wherever the preset has it.

    Args:
        preset_where: Where the preset is named, for the error if there is none of this name. None: in the
            document.
    """
    own = _hyphenated(document, where)
    suites = own.get("suite", [])
    if not isinstance(suites, list) or not all(isinstance(suite, dict) for suite in suites):
        raise RequestError(
            "suite must be an array of tables",
            code="spec.not-a-table",
            where=f"{where}: suite",
            next_step="Write [[suite]] above each.",
        )
    if not suites and "preset" not in own:
        raise RequestError(
            "the file contains nothing to measure",
            code="spec.nothing-to-measure",
            where=f"{where}: suite",
            next_step="Write a table [[suite]], or name a preset.",
        )
    name = own.get("preset")
    if not isinstance(name, str):
        if not suites:  # all that the file has are the preset's
            raise RequestError(
                f"{shortened(repr(name), 60)} is not the name of a preset",
                code="spec.no-such-preset",
                where=f"{where}: preset",
                next_step=f"Write one in quotes: {', '.join(preset_names())}.",
            )
        return _laid_out(own, where)
    base = _hyphenated(tomllib.loads(preset_text(name, where=preset_where or f"{where}: preset")), name)
    every = _every(own, where)
    taken_out = {key for key, value in every.items() if value == NOT_STATED}
    suites = [
        {
            key: value
            for key, value in {**_every(base, name), **every, **suite}.items()
            if key not in taken_out
        }
        for suite in base["suite"]
    ]
    added = own.get("suite", [])
    for suite in added:
        place = next((i for i, known in enumerate(suites) if known["name"] == suite.get("name")), None)
        if place is None:
            suites.append({**every, **suite})
        else:
            suites[place] = {**suites[place], **suite}
    chosen = {key: value for key, value in own.items() if key not in (EVERY_SUITE, "suite")}
    tables = {
        key: {**base[key], **chosen[key]}
        for key in chosen
        if isinstance(chosen[key], dict) and isinstance(base.get(key), dict)
    }
    rest = {key: value for key, value in base.items() if key != EVERY_SUITE}
    return {**rest, **chosen, **tables, "suite": [_stated(suite) for suite in suites]}


def unheeded(document: dict[str, Any]) -> list[str]:
    """Keys of a checked document's `[every-suite]` that suites of its preset say otherwise themselves, and so
    keep: a line each."""
    own = _hyphenated(document, "campaign")
    if not isinstance(own.get("preset"), str):
        return []
    base = tomllib.loads(preset_text(own["preset"]))
    lines = []
    for key, value in _every(own, "campaign").items():
        keeps = [suite for suite in base["suite"] if key in suite and suite[key] != value]
        changed = [suite.get("name") for suite in own.get("suite", []) if key in suite]
        names = [repr(suite["name"]) for suite in keeps if suite["name"] not in changed]
        if names and value != NOT_STATED:
            lines.append(
                f"{key} in [{EVERY_SUITE}] does not change what the preset sets for"
                f" {', '.join(names)}; to change that, write it in a [[suite]] with that"
                " name."
            )
    return lines


def _laid_out(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Every suite has the keys of `[every-suite]`, which is gone."""
    every = _every(document, where)
    rest = {key: value for key, value in document.items() if key != EVERY_SUITE}
    return {**rest, "suite": [_stated({**every, **suite}) for suite in rest["suite"]]}


def _stated(suite: dict[str, Any]) -> dict[str, Any]:
    """The suite without the keys that are taken out."""
    return {key: value for key, value in suite.items() if value != NOT_STATED}


def _every(document: dict[str, Any], where: str) -> dict[str, Any]:
    every = document.get(EVERY_SUITE, {})
    if not isinstance(every, dict):
        raise RequestError(
            f"{every!r} is not a table",
            code="spec.not-a-table",
            where=f"{where}: {EVERY_SUITE}",
            next_step=f"Write [{EVERY_SUITE}] above its keys.",
        )
    if "name" in every:
        raise RequestError(
            "suites cannot all have the same name",
            code="spec.one-name-for-all",
            where=f"{where}: {EVERY_SUITE}.name",
            next_step="Omit the key there.",
        )
    return every


def _hyphenated(value: Any, where: str) -> Any:
    """Keys as the shell writes them: `host_mode` is `host-mode`. RequestError if a table has both."""
    if isinstance(value, list):
        return [_hyphenated(item, where) for item in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = {}
    for key, item in value.items():
        name = key.replace("_", "-")
        if name in renamed:
            raise RequestError(
                f"{name!r} is given twice, once with - and once with _",
                code="spec.given-twice",
                where=where,
                next_step="Write it once.",
            )
        renamed[name] = _hyphenated(item, where)
    return renamed
