"""A headless Chromium for tests that look at pages as a person does, spoken to over its debugging pipe: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--mute-audio",
    "--disable-extensions", "--disable-background-networking", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 60.0  # for what a page must show, on a busy machine


def chromium() -> str:
    """The browser's path; the test is skipped where none is installed."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(
            f"no browser here: install one of {', '.join(NAMES)} (Debian: apt-get install chromium)"
        )
    return found


class Browser:
    """One page. The browser reads commands from descriptor 3 and writes answers to 4, each ended by a zero byte."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 860) -> None:
        command_read, self._out = os.pipe()
        self._in, answer_write = os.pipe()
        shell = f'exec "$0" "$@" 3<&{command_read} 4>&{answer_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, chromium(), *OPTIONS, f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(command_read, answer_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(command_read)
        os.close(answer_write)
        self._buffer, self._numbers, self._session = b"", count(1), ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.send("Page.enable")
        self.size(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._out)  # the end of its commands is the end of the browser
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._in)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; events in between are passed over. Raises RuntimeError for what the browser refuses."""
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        os.write(
            self._out,
            json.dumps({"id": number, "method": method, "params": params, **session}).encode()
            + b"\0",
        )
        while True:
            while b"\0" not in self._buffer:
                part = os.read(self._in, 1 << 20)
                if not part:
                    raise RuntimeError(f"the browser ended during {method}")
                self._buffer += part
            line, _, self._buffer = self._buffer.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page. Raises RuntimeError where it throws."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Waits for an expression to be true. Raises AssertionError with the page's text when it stays false."""
        end = time.monotonic() + PATIENCE_S
        while not self.run(script):
            assert time.monotonic() < end, (
                f"{script} stays false; the page says: {self.run('document.body.innerText')}"
            )
            time.sleep(0.05)

    def key(self, key: str) -> None:
        """One press as the keyboard gives it."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def dark(self, on: bool) -> None:
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}],
        )

    def size(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self, path: Path, whole: bool = False) -> None:
        """A PNG of what is seen, or of the whole page."""
        path.write_bytes(
            base64.b64decode(
                self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)[
                    "data"
                ]
            )
        )

    def pdf(self, path: Path) -> None:
        """The page as it is printed, on its own paper size."""
        path.write_bytes(
            base64.b64decode(
                self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
            )
        )
