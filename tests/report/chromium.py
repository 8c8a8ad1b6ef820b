# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser: Chromium without a window, spoken to over a pipe (DevTools protocol). No port is
opened."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

TIMEOUT_S = 60


def find_chromium() -> str | None:
    """None if it is not installed."""
    return next(
        (
            found
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (found := shutil.which(name))
        ),
        None,
    )


@dataclass(slots=True)
class Browser:
    """One page at a time."""

    to: int
    source: int
    events: list[dict[str, Any]] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""
    _session: str | None = None

    def open(
        self, path: Path | str, *, width: int, height: int = 900, scheme: Literal["light", "dark"] = "light"
    ) -> None:
        """Show a file, or what is at an address, at this width in CSS pixels; below 700 as a phone does."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if width < 700 else 1,
            mobile=width < 700,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path if isinstance(path, str) else path.absolute().as_uri())
        self._wait_for("Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, path: Path) -> None:
        printed = self.call(
            "Page.printToPDF",
            printBackground=True,
            preferCSSPageSize=True,
            paperWidth=8.27,
            paperHeight=11.69,
        )
        path.write_bytes(base64.b64decode(printed["data"]))

    @property
    def complaints(self) -> list[str]:
        """What the console and the log of the page say."""
        self.ask("1")  # whatever came before its answer has come
        return [
            json.dumps(event)
            for event in self.events
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        ]

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        self.ask("1")
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def begin(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self.source, 1 << 20)
            if not more:
                raise AssertionError("Chromium has ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium of our own, with a profile that goes away with it."""
    program = find_chromium()
    assert program is not None
    its_input, to = os.pipe()
    source, its_output = os.pipe()
    with tempfile.TemporaryDirectory(prefix="evenhand-chromium-") as profile:

        def join_pipes() -> None:
            # Chromium reads from 3 and writes to 4; the pipes may have these very numbers.
            spare_input, spare_output = os.dup(its_input), os.dup(its_output)
            high_input, high_output = os.dup2(spare_input, 60), os.dup2(spare_output, 61)
            os.dup2(high_input, 3)
            os.dup2(high_output, 4)

        arguments = [
            program,
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
        ]
        process = subprocess.Popen(
            arguments,
            preexec_fn=join_pipes,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_input)
        os.close(its_output)
        try:
            shown = Browser(to=to, source=source)
            shown.begin()
            yield shown
        finally:
            with suppress(AssertionError, OSError):
                shown._session = None
                shown.call("Browser.close")
            os.close(to)
            os.close(source)
            try:
                process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
