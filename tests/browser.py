"""A headless Chromium for tests that look at pages as a person does.

It is controlled over its debugging pipe: no driver, no port, no extra package.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--mute-audio",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# how long to wait for something to appear on the page, on a busy machine
PATIENCE_S = 60.0


def chromium() -> str:
    """Return the browser's path; skip the test if no browser is installed."""
    path = next((path for name in NAMES if (path := shutil.which(name))), None)
    if path is None:
        pytest.skip(
            f"no browser here: install one of {', '.join(NAMES)} (Debian: apt-get install chromium)"
        )
    return path


class Browser:
    """One page of a headless browser.

    The browser reads commands from descriptor 3 and writes responses to descriptor 4. Each message
    ends with a zero byte.
    """

    def __init__(self, profile: Path, width: int = 1280, height: int = 860) -> None:
        command_read, self._out = os.pipe()
        self._in, answer_write = os.pipe()
        shell = f'exec "$0" "$@" 3<&{command_read} 4>&{answer_write}'
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                shell,
                chromium(),
                *OPTIONS,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
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

    def __exit__(self, *_: object) -> None:
        os.close(self._out)  # closing the command pipe ends the browser
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._in)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its response; skip events in between.

        Raises RuntimeError if the browser rejects the command.
        """
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
        """Return the value of a JavaScript expression in the page.

        Raises RuntimeError if the expression throws.
        """
        result = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until a JavaScript expression is true.

        Raises AssertionError with the page's text if it stays false.
        """
        end = time.monotonic() + PATIENCE_S
        while not self.run(script):
            assert time.monotonic() < end, (
                f"{script} stays false; the page says: {self.run('document.body.innerText')}"
            )
            time.sleep(0.05)

    def key(self, key: str) -> None:
        """Press and release one key, as a keyboard does."""
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
        """Save a PNG of the visible part of the page, or of the whole page."""
        path.write_bytes(
            base64.b64decode(
                self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)[
                    "data"
                ]
            )
        )

    def pdf(self, path: Path) -> None:
        """Save the page as a PDF in print layout, on the paper size that the page sets."""
        path.write_bytes(
            base64.b64decode(
                self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
            )
        )
