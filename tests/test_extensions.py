"""CONTRIBUTING's promises: one new file adds a source, a benchmark or a command, and nothing else is edited."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = '''
"""Problems of a new source."""

from problems.sources.own import own
from problems.sources.source import Source

MINE = Source("mine", "problems for a test", own("mine").convert)
'''
BENCHMARK = '''
"""A new benchmark."""

from evaluation.benchmarks.benchmark import from_problems
from evaluation.benchmarks.published import Published
from evaluation.sampling import Sampling
from problems.sources.registry import SOURCES


def mine(at):
    return from_problems("mine", at.problems, Sampling())


BENCHMARKS = (Published("mine", SOURCES["mine"], mine),)
'''
COMMAND = '''
"""Say hello."""

GROUP = "Run"


def command() -> None:
    """Say hello."""
    print("hello")
'''
PROBLEM = {
    "id": "twice",
    "statement": "Double.",
    "style": "call",
    "entry_point": "twice",
    "tests": [{"args": [2], "expected": 4}],
    "solutions": ["def twice(x):\n    return 2 * x\n"],
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with one new file for each kind."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(("tests/", "docs/", ".")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / "problems" / "sources" / "mine.py").write_text(SOURCE.lstrip())
    (folder / "evaluation" / "benchmarks" / "mine.py").write_text(BENCHMARK.lstrip())
    (folder / "cli" / "hello.py").write_text(COMMAND.lstrip())
    return folder


def ratchet(clone: Path, *args: str) -> str:
    """Run the copy's command line; the folder that `-m` starts in comes before the installed one."""
    ran = subprocess.run(
        [sys.executable, "-m", "cli.main", *args], cwd=clone, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_command_is_one_file(clone: Path) -> None:
    assert ratchet(clone, "hello") == "hello\n"
    assert "Say hello." in ratchet(clone, "--help")


@pytest.mark.slow
def test_a_source_and_a_benchmark_are_one_file_each(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    data, answers = tmp_path / "mine.jsonl", tmp_path / "answers.jsonl"
    data.write_text(json.dumps(PROBLEM) + "\n")
    answers.write_text(json.dumps({"task_id": "twice", "solution": PROBLEM["solutions"][0]}) + "\n")  # type: ignore[index]
    assert "mine" in ratchet(clone, "data", "add", "mine", "--path", str(data))
    said = ratchet(clone, "evaluate", "--benchmark", "mine", "--completions", str(answers))
    assert "100.0 %" in said, said
