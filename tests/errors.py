# SPDX-License-Identifier: Apache-2.0
"""Which error it must be, by its code. `python -m tests.base.messages` prints the messages of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evenhand.base.errors import EvenhandError


@contextmanager
def raises(code: str, *, match: str | None = None) -> Iterator[pytest.ExceptionInfo[EvenhandError]]:
    """`pytest.raises` for the one kind of mistake that has this code.

    Args:
        match: A regular expression for the value or the place that the error must name, as
            `place: what is wrong`; "" for none.
    """
    with pytest.raises(EvenhandError, match=match or None) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code} instead of {code}: {caught.value}"
