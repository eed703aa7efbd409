"""CONTRIBUTING's promises: one new file (for an algorithm: one entry) adds each kind of part.

The parts are added to a copy of the repository and used from there.
"""

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
COMPONENT = '''
"""Reward programs of few lines."""

from rewards.components.component import Component, Program


def short(program: Program) -> float:
    return 1.0 / len(program.code.splitlines())


COMPONENT = Component("Programs of few lines.", short)
'''
ALGORITHM = """
    "mine": Algorithm("My own", "nowhere", "A = r", _estimator("grpo")),
"""
BACKEND = '''
"""Processes of this machine, under another name."""

from sandbox.backends.local import LocalBackend, LocalChannel


class MineBackend(LocalBackend):
    def open(self, number: int, of: int) -> LocalChannel:
        channel = super().open(number, of)
        channel.where = "mine: "
        return channel


BACKEND = MineBackend
'''
ENGINE = '''
"""Repeats the last message."""

from pathlib import Path

from serving.engines import Answer, Ask


class Echo:
    def __init__(self, folder: Path) -> None:
        pass

    def answer(self, ask: Ask) -> Answer:
        return Answer(ask.chat[-1]["content"], 1, 1, "stop")


ENGINE = Echo
'''
FILES = {
    "problems/sources/mine.py": SOURCE,
    "evaluation/benchmarks/mine.py": BENCHMARK,
    "cli/hello.py": COMMAND,
    "rewards/components/short.py": COMPONENT,
    "sandbox/backends/mine.py": BACKEND,
    "serving/engines/echo.py": ENGINE,
}
SCORED = """
import json, sys
from rewards.composite import Reward
from rewards.config import RewardConfig
from problems.sources.own import own
from sandbox.protocol import Report, TestResult, Verdict

problem = own("mine").convert(json.loads(sys.argv[1]), "here")
report = Report("job", Verdict.AC, (TestResult(Verdict.AC),))
answer = "x = 1\\ndef twice(x):\\n    a = 2\\n    return a * x\\n"
score = Reward(RewardConfig(weights={"short": 0.5})).score(problem, answer, report)
print(score.components["short"], score.gave["short"])
"""
SERVED = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from artifacts.integrity import content_of, hashes_of
from resources.home import Home
from resources.registry.ledger import Ledger
from serving.engines import engine_of
from serving.gateway import make_app

home, weights = Home(Path(sys.argv[1])), Path(sys.argv[1], "one")
weights.mkdir(parents=True)
(weights / "model.safetensors").write_bytes(b"weights")
Ledger(home.ledger).append(
    "promote", checkpoint="one", checkpoint_hash=content_of(hashes_of(weights)),
    path=str(weights), decision={}, chain="chain-0001", against=None,
)
chat = {"model": "champion", "messages": [{"role": "user", "content": "Hello?"}]}
answer = TestClient(make_app(home, engine_of("echo"))).post("/v1/chat/completions", json=chat)
print(answer.json()["choices"][0]["message"]["content"])
"""
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
    """A copy of the packages with a new part of each kind."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(("tests/", "docs/", ".")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for name, text in FILES.items():
        (folder / name).write_text(text.lstrip())
    algorithms = folder / "verl_jobs" / "config" / "algorithms.py"
    before, opening, after = algorithms.read_text().partition(
        "ALGORITHMS: dict[str, Algorithm] = {\n"
    )
    assert opening
    algorithms.write_text(before + opening + ALGORITHM.lstrip("\n") + after)
    return folder


def python(clone: Path, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in the copy; the folder that it starts in comes before the installed one."""
    return subprocess.run(
        [sys.executable, *args], cwd=clone, input=stdin, capture_output=True, text=True
    )


def ratchet(clone: Path, *args: str, stdin: str = "") -> str:
    """Run the copy's command line."""
    ran = python(clone, "-m", "cli.main", *args, stdin=stdin)
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
    output = ratchet(clone, "evaluate", "--benchmark", "mine", "--completions", str(answers))
    assert "100.0 %" in output, output


@pytest.mark.slow
def test_a_reward_component_is_one_file(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = python(clone, "-c", SCORED, json.dumps(PROBLEM))
    assert scored.returncode == 0, scored.stderr
    value, gave = map(float, scored.stdout.split())
    assert value == 0.25 and gave == pytest.approx(0.25 * 0.5 / 1.5)
    monkeypatch.setenv("RATCHET_SET", "reward.weights.short=0.2")
    assert "short" in ratchet(clone, "config", "show")
    monkeypatch.setenv("RATCHET_SET", "reward.weights.shrot=0.2")
    refused = python(clone, "-m", "cli.main", "config", "show")
    assert (
        refused.returncode == 2
        and "reward.weights.shrot: no such key, did you mean 'short'" in refused.stderr
    )


@pytest.mark.slow
def test_an_algorithm_is_one_entry(clone: Path) -> None:
    shown = ratchet(clone, "train", "--algorithm", "mine", "--show")
    assert "My own (nowhere)" in shown and "algorithm.adv_estimator=grpo" in shown


@pytest.mark.slow
def test_a_backend_of_the_sandbox_is_one_file(clone: Path) -> None:
    program = {"id": 1, "source": PROBLEM["solutions"][0], "problem": PROBLEM}  # type: ignore[index]
    verdict = json.loads(
        ratchet(clone, "judge", "--backend", "mine", stdin=json.dumps(program) + "\n")
    )
    assert verdict["verdict"] == "AC" and verdict["isolation"].startswith("mine: "), verdict


@pytest.mark.slow
def test_an_engine_of_the_gateway_is_one_file(clone: Path, tmp_path: Path) -> None:
    answered = python(clone, "-c", SERVED, str(tmp_path / "home"))
    assert answered.stdout == "Hello?\n", answered.stderr
