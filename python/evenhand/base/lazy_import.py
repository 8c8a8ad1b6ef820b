# SPDX-License-Identifier: Apache-2.0
"""Packages that take longer to load than most commands take to run: loaded when something of theirs is first
used."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_import(name: str) -> Any:
    """The module of this name, whose own code runs at the first use of one of its attributes.

    Raises:
        ModuleNotFoundError: There is none.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def lazy_names(package: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """For the package's `__getattr__`.

    Args:
        places: Names by the module that has them: `{"facts": ("tester_facts",)}` of this package,
            `{"evenhand.dut.facts": ("READ_THERE",)}` of another.
    """
    top = package.partition(".")[0] + "."
    module_of = {
        name: module if module.startswith(top) else f"{package}.{module}"
        for module, names in places.items()
        for name in names
    }

    def find(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
