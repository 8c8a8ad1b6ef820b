# SPDX-License-Identifier: Apache-2.0
"""Packages that take longer to load than most commands take to run: loaded when something of theirs is first
used."""

from __future__ import annotations

import importlib.util
import sys
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
