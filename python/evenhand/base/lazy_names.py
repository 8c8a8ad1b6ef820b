# SPDX-License-Identifier: Apache-2.0
"""Names of a package that are loaded when they are first used (PEP 562): to import one of them loads its
module, and not all modules of the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """For the package's `__getattr__`.

    Args:
        places: Names by the module of the package that has them: `{"dut.facts": ("READ_THERE",)}`.
    """
    module_of = {name: f"{package}.{module}" for module, names in places.items() for name in names}

    def find(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
