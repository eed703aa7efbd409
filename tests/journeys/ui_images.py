"""Take the images of Dagster's web interface in docs/images, from a home with a finished run.

Only the web interface is started, without the daemon, so that nothing runs.
`IMAGES=docs/images pytest tests/journeys/test_pipeline_run.py -k pages` makes those of the docs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import dagster as dg

from assets.stages import DATA, EVALUATION, MODELS, PROMOTION
from resources.ray.head import free_ports
from tests.browser import PATIENCE_S, Browser
from tests.journeys.demo_run import wait_until
from tests.journeys.test_ui import answers

ROOT = Path(__file__).resolve().parents[2]
SETTLE_S = 2.0  # between two images of a page that are compared
GROUPS = (DATA, MODELS, EVALUATION, PROMOTION)
EXPANDED = ",".join(f"global@global:{name}" for name in GROUPS)


class Page(NamedTuple):
    """A page, and a text that is on it when it is complete. click: a button, by its icon's name."""

    address: str
    text: str
    height: int = 950
    width: int = 1500
    click: str = ""


PAGES = {
    "graph": Page(f"asset-groups?expanded={EXPANDED}", "deployment", 600, 2400, "zoom_out"),
    "data": Page("assets/clean_problems", "problems_removed", 2000),
    "checkpoint": Page("assets/checkpoint", "validation_pass_at_1", 800),
    "training": Page("assets/checkpoint?view=events&asOf={observed}", "seconds_a_step"),
    "scores": Page("assets/contestant_scores", "failures", 1300),
    "champion": Page("assets/promoted_model", "reasons", 1100),
    "automation": Page("automation", "only on Sunday", 1120),
    "run": Page("runs/{run}", "RUN_SUCCESS"),
}


@contextmanager
def web_interface(home: Path) -> Iterator[str]:
    """Start Dagster's web interface on a home's history; yield its address."""
    [port] = free_ports(1)
    environment = os.environ | {"RATCHET_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
    command = [sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        [*command, "-m", "pipelines.definitions", "-d", str(ROOT)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        assert wait_until(lambda: answers(f"{address}/server_info"), 120)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def take_images(home: Path, folder: Path) -> None:
    """Save an image of each page. Raises AssertionError if a page lacks its text."""
    folder.mkdir(parents=True, exist_ok=True)
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        [run] = instance.get_runs(dg.RunsFilter(job_name="full_pipeline"), limit=1)
        [step] = instance.fetch_observations(dg.AssetKey("checkpoint"), limit=1).records
    names = {"run": run.run_id, "observed": round(1000 * step.timestamp)}
    with (
        tempfile.TemporaryDirectory() as profile,
        web_interface(home) as address,
        Browser(Path(profile)) as browser,
    ):
        for name, page in PAGES.items():
            browser.size(page.width, page.height)
            browser.open(f"{address}/{page.address.format(**names)}")
            browser.until(f"document.body.innerText.includes('{page.text}')")
            if page.click:
                settle(browser, folder / f"{name}.png")
                icon = f"document.querySelector('[aria-label=\"{page.click}\"]')"
                browser.run(f"{icon}.closest('button').click()")
            settle(browser, folder / f"{name}.png")


def settle(browser: Browser, path: Path) -> None:
    """Save images of the page until two in a row are equal, at most for PATIENCE_S."""
    last, end = b"", time.monotonic() + PATIENCE_S
    browser.picture(path)
    while path.read_bytes() != last and time.monotonic() < end:
        last = path.read_bytes()
        time.sleep(SETTLE_S)
        browser.picture(path)
