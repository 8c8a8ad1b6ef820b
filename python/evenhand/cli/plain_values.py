# SPDX-License-Identifier: Apache-2.0
"""Values of the command line that need no conversion. Typer makes a validator of pydantic for each of them,
and to load that takes longer than many a verb runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PLACE = "_runtime_param"
"""Where Typer keeps what converts a parameter's value; older versions have none, and need no pydantic."""


def take_plainly(parameters: Iterable[Any]) -> None:
    """Have each of these parameters of Typer take texts, names of files, its default, and no value at all as
    they are."""
    for parameter in parameters:
        if getattr(parameter, PLACE, parameter) is None:
            setattr(parameter, PLACE, PlainValue())


class PlainValue:
    """In place of Typer's conversion, which is made when a value needs it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that the verb gets. Errors are Typer's."""
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        if not is_list and info.parser is None:
            if kind is Path and isinstance(value, str | Path) and _is_any_path(info, value):
                return Path(value)
            if type(value) is kind and kind is not Path:
                return value  # a text, or a default of another type
        setattr(param, PLACE, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _is_any_path(info: Any, path: str | Path) -> bool:
    """Whether Typer has nothing to say of it: it need not be there, and what is there can be read."""
    is_asked = info.exists or info.writable or info.resolve_path or info.allow_dash or info.path_type
    is_either = info.file_okay and info.dir_okay
    return is_either and not is_asked and (not os.path.exists(path) or os.access(path, os.R_OK))
