"""Alert rules and board: each rule fires and is silent where it should, and its series exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import dagster as dg
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pipelines.metrics import HomeCollector
from resources.home import Home
from resources.settings import Settings
from tests.deploy.monitoring import FOLDER, named, rules
from tests.finished_home import fill_ledger, write_home

RUNBOOK = Path(__file__).parents[2] / "docs" / "how-to" / "runbook.md"


@pytest.mark.parametrize("check", [("check", "rules", "alerts.yaml"),
                                   ("test", "rules", "alerts.test.yaml")])  # fmt: skip
def test_prometheus_accepts_the_rules_and_each_fires_and_is_silent(check: tuple[str, ...]) -> None:
    if not (promtool := shutil.which("promtool")):
        pytest.skip("promtool is missing: install Debian's package prometheus")
    done = subprocess.run(
        [promtool, *check], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_rule_is_tested() -> None:
    text = (FOLDER / "alerts.test.yaml").read_text(encoding="utf-8")
    assert re.findall(r"alertname: (\w+)", text) == 2 * list(rules())


def test_each_rule_has_a_heading_in_the_runbook() -> None:
    headings = re.findall(r"^## (\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == list(rules())


def test_a_scrape_of_a_finished_run_has_every_series_of_rules_and_board(tmp_path: Path) -> None:
    home = Home(write_home(tmp_path))
    fill_ledger(home, promoted=True)
    registry = CollectorRegistry()
    with dg.instance_for_test() as instance:
        registry.register(HomeCollector(Settings(home, "small"), instance))
        page = generate_latest(registry).decode()
    assert named(gateway=False) - set(re.findall(r"^(\w+)[{ ]", page, re.MULTILINE)) == set()
    for part in re.findall(r'unwell\{part="([^"]+)"', " ".join(rules().values())):
        assert f'ratchet_unwell{{part="{part}"}}' in page
    assert "ratchet_champion_version 2.0" in page
    assert "ratchet_training_step 2.0" in page
    assert 'ratchet_verdicts{verdict="WA"} 2.0' in page
