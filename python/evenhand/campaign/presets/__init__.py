# SPDX-License-Identifier: Apache-2.0
"""Campaigns that have a name: TOML files in this folder, and how a user's file is laid over one of them."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from importlib.resources import files
from typing import Any

from evenhand.errors import RequestError

EVERY_SUITE = "every-suite"
"""A table whose keys all suites have that do not have them themselves."""


def preset_names() -> list[str]:
    """In alphabetical order."""
    return sorted(entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if entry.name.endswith(".toml"))


def preset_text(name: str, *, where: str = "preset") -> str:
    """The TOML file itself, to be read and copied. RequestError names the presets there are."""
    names = preset_names()
    if name not in names:
        near = get_close_matches(name, names, n=1)
        raise RequestError(
            f"there is no preset {name!r}", where=where,
            next_step=f"Did you mean {near[0]!r}? " * bool(near) + f"There are: {', '.join(names)}.",
        )  # fmt: skip
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def apply_preset(document: dict[str, Any], *, where: str) -> dict[str, Any]:
    """The whole campaign: the user's document over its preset, and `[every-suite]` laid out; keys with `-`.

    What the user writes for a suite that the preset has by this name changes that suite; other suites are added. The user's `[every-suite]`
    goes before what the preset says of its suites.
    """
    own = _hyphenated(document, where)
    suites = own.get("suite", [])
    if not isinstance(suites, list) or not all(isinstance(suite, dict) for suite in suites):
        raise RequestError("suites are a list of tables", where=f"{where}: suite", next_step="Write [[suite]] above each.")
    if not suites and "preset" not in own:
        raise RequestError("there is nothing to measure", where=f"{where}: suite", next_step="Write a table [[suite]], or name a preset.")
    name = own.get("preset")
    if not isinstance(name, str):
        return _laid_out(own, where)
    base = _laid_out(_hyphenated(tomllib.loads(preset_text(name, where=f"{where}: preset")), name), name)
    every = _every(own, where)
    suites = [{**suite, **every} for suite in base["suite"]]
    added = own.get("suite", [])
    for suite in added:
        place = next((i for i, known in enumerate(suites) if known["name"] == suite.get("name")), None)
        if place is None:
            suites.append({**every, **suite})
        else:
            suites[place] = {**suites[place], **suite}
    chosen = {key: value for key, value in own.items() if key not in (EVERY_SUITE, "suite")}
    tables = {key: {**base[key], **chosen[key]} for key in chosen if isinstance(chosen[key], dict) and isinstance(base.get(key), dict)}
    return {**base, **chosen, **tables, "suite": suites}


def _laid_out(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Every suite has the keys of `[every-suite]`, which is gone."""
    if EVERY_SUITE not in document:
        return document
    every = _every(document, where)
    rest = {key: value for key, value in document.items() if key != EVERY_SUITE}
    return {**rest, "suite": [{**every, **suite} for suite in rest["suite"]]}


def _every(document: dict[str, Any], where: str) -> dict[str, Any]:
    every = document.get(EVERY_SUITE, {})
    if not isinstance(every, dict):
        raise RequestError(f"{every!r} is no table", where=f"{where}: {EVERY_SUITE}", next_step=f"Write [{EVERY_SUITE}] above its keys.")
    if "name" in every:
        raise RequestError("all suites cannot have one name", where=f"{where}: {EVERY_SUITE}.name", next_step="Leave it out there.")
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
            raise RequestError(f"{name!r} is there twice, with - and with _", where=where, next_step="Write it once.")
        renamed[name] = _hyphenated(item, where)
    return renamed
