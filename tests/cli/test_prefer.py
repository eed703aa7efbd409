"""`ratchet prefer` makes a round from scorecards or files, serves its page, prints the result."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from artifacts.manifest import Manifest
from cli.prefer import PreferenceOptions, prefer, round_of
from evaluation.benchmarks import Benchmark, heldout
from evaluation.scorecard import Scorecard
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from resources.settings import Settings
from serving.preference.round import begin, read_round
from tests.cli.conftest import Called
from tests.evaluation.scorecards import sample, scorecard
from tests.pipelines.home_builder import HomeBuilder

ROOT = Path(__file__).parents[2]


def card(checkpoint: str, benchmark: Benchmark) -> Scorecard:
    samples = (
        sample(p.problem_id, completion=f"{checkpoint} on {p.problem_id}")
        for p in benchmark.problems
    )
    return scorecard(
        checkpoint,
        samples,
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        prompts={p.problem_id: benchmark.prompt(p)[-1]["content"] for p in benchmark.problems},
    )


@pytest.fixture
def scored(home_builder: HomeBuilder) -> HomeBuilder:
    """Return a home with a pipeline run's scorecards on the fourth held-out draw."""
    benchmark = heldout(heldout_tasks(FamilyConfig(), 15, 5))
    with home_builder.run_context.store.draft("scores", "chain-0004") as folder:
        for who, name in (("champion", "chain-0003"), ("challenger", "chain-0004")):
            card(name, benchmark).write(folder / f"{who}--heldout.json")
        (folder / "not_measured.json").write_text("{}")
        home_builder.run_context.store.publish(
            folder,
            Manifest(kind="scores", name="chain-0004", key="k", content_hash="", facts={"draw": 4}),
        )
    return home_builder


def options_of(*contestants: str, **other: Any) -> PreferenceOptions:
    return PreferenceOptions(
        **(
            {
                "contestants": contestants,
                "benchmark": "",
                "tasks": None,
                "pairs": 0,
                "seed": 0,
                "question": "",
                "to": None,
            }
            | other
        )
    )


def output_of(options: PreferenceOptions) -> str:
    """Start the round without its page, and return its result."""
    console, settings = Console(file=StringIO(), width=300), Settings.read("embedded")
    begin(*round_of(options, settings))
    assert prefer(options, "127.0.0.1", 8088, True, settings, console) == 0
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.fixture
def inside(scored: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RATCHET_HOME", str(scored.run_context.home.path))
    return scored.run_context.home.path


def test_pairs_come_from_scorecards_with_their_prompts(inside: Path, tmp_path: Path) -> None:
    text = output_of(options_of("chain-0003", "chain-0004", to=tmp_path / "round"))
    assert str(tmp_path / "round") in text
    _, pairs = read_round(tmp_path / "round")
    problems = {
        problem.problem_id: problem.statement for problem in heldout_tasks(FamilyConfig(), 15, 5)
    }
    assert {pair.problem_id for pair in pairs.values()} == problems.keys()
    assert all(problems[pair.problem_id] in pair.statement for pair in pairs.values())


def test_a_missing_scorecard_names_the_existing_ones(inside: Path) -> None:
    with pytest.raises(FileNotFoundError, match="chain-0003, chain-0004"):
        output_of(options_of("chain-0003", "chain-0009"))


def test_the_seed_decides_the_round(inside: Path) -> None:
    for seed in (0, 0, 1):
        output_of(options_of("chain-0003", "chain-0004", seed=seed))
    assert len(list((inside / "preferences").iterdir())) == 2


def files(folder: Path) -> list[str]:
    for name in ("a", "b"):
        rows = [
            {"task_id": f"t/{i}", "completion": f"{name} {i}", "prompt": f"Do {i}."}
            for i in range(3)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(folder / "a.jsonl"), str(folder / "b.jsonl")]


@pytest.mark.slow
def test_the_command_serves_a_page_and_prints_the_result(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "prefer", *files(tmp_path)]
    settings = os.environ | {"RATCHET_HOME": str(tmp_path / "home"), "COLUMNS": "200"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=settings
    )
    try:
        assert process.stdout
        address = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", process.stdout.readline())
        assert address
        with httpx.Client(
            base_url=address[1], headers={"x-ratchet-token": address[2]}, timeout=60
        ) as page:
            for judge in ("ann", "bob"):
                while pair := page.post("/next", json={"judge": judge}).json()["pair"]:
                    chosen = "left" if pair["left"].startswith("b") else "right"
                    assert (
                        page.post(
                            "/choose", json={"judge": judge, "pair": pair["id"], "chosen": chosen}
                        ).status_code
                        == 200
                    )
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert process.returncode == 0
    assert not errors
    assert re.search(r"6 choices.*2 judges.*ann, bob.*3 of 3", output)
    assert re.search(r"6 won, 0 lost, 0 tied.*p = 0\.250", output)
    again = subprocess.run(
        [*command, "--result"], capture_output=True, text=True, cwd=ROOT, env=settings, check=True
    )
    assert "b over a" in again.stdout
    page_of = next((tmp_path / "home" / "preferences").glob("*/standing.md"))
    assert "6 choices by 2 judges" in page_of.read_text()


def test_a_result_before_the_first_round_is_refused_and_writes_nothing(
    ratchet: Called, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    code, output, errors = ratchet(home, "prefer", *files(tmp_path), "--result")
    assert (code, output) == (2, "")
    assert "holds no round: start one with" in errors
    assert not home.exists()
