# SPDX-License-Identifier: Apache-2.0
"""`evenhand.open_testbed`: the procedures from Python, with a run file of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path

from evenhand.base.validation.typed_fields import check_type
from evenhand.procedure import OnEvent, OpenTestbed, ignore
from evenhand.rig import read_setup
from evenhand.run import RunStore
from evenhand.trial import capture_file


@contextmanager
def open_testbed(
    path: str | Path,
    *,
    run: str | Path | None = None,
    capture: str | Path | None = None,
    engine: str | Path | None = None,
    on_event: OnEvent = ignore,
    host_name: bool = False,
) -> Iterator[OpenTestbed]:
    """A testbed to measure with. Nothing is started and nothing is sent before one of its methods is called.

    Args:
        path: A testbed file (TOML), or `lab:linux` or `lab:vm` for a lab that is up.
        run: Store every trial in this file, which must not exist; None: store nothing. Each trial is stored
            before the next one begins.
        capture: Write the first received frames of each kind that were not what was sent to this new pcapng
            file, each with a comment; None: keep none.
        engine: Default: EVENHAND_ENGINE, this checkout's, PATH.
        on_event: Gets every `ProcedureEvent` while a method measures; match it by its type. An exception of
            its own ends the procedure.
        host_name: Store the name of this machine as well.

    Raises:
        RequestError: The file is invalid, or does not confirm an isolated test environment; the run file
            exists already.
        HostError: A device does not exist, or is in use; the run file cannot be written.
    """
    for given, where in ((path, "path"), (run, "run"), (capture, "capture"), (engine, "engine")):
        check_type(given, str | PathLike if where == "path" else str | PathLike | None, where=where)
    check_type(on_event, Callable, where="on_event")
    check_type(host_name, bool, where="host_name")
    setup, engine_path = read_setup(str(path)), None if engine is None else Path(engine)
    command = [Path(sys.argv[0]).name or "python", *sys.argv[1:]]
    with ExitStack() as stack:
        store = file = None
        if run is not None:
            created = RunStore.create(Path(run), command=command, host_name=host_name)
            store = stack.enter_context(created)
        if capture is not None:
            file = stack.enter_context(capture_file(Path(capture), where="capture"))
        yield OpenTestbed(setup=setup, engine=engine_path, recorder=store, capture=file, on_event=on_event)
