"""CONTRIBUTING's table of changes: each row that promises one new file (or entry) has a test here.

The parts are added to a copy of the repository and used from there. The other rows name files that
exist.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = '''
"""Problems of a new source."""

from problems.reading.own import own
from problems.reading.source import Source

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


MINE = Published("mine", SOURCES["mine"], mine)
'''
LOG = '''
"""A file of right and wrong tasks."""

from evaluation.logs.log import LoggedCompletion, Log, LogFormat


def read(content, path):
    completions = [LoggedCompletion(task, {"right": v}) for task, v in content.items()]
    return Log("mine", "1", path.stem, completions)


MINE = LogFormat("Mine", ("*.mine.json",), lambda content: "t1" in content, read, "run it again")
'''
COMMAND = '''
"""Say hello."""

from cli.app.commands import Command


def command() -> None:
    """Say hello."""
    print("hello")


COMMAND = Command("Run", command)
'''
COMPONENT = '''
"""Reward programs of few lines."""

from rewards.components.component import Component, RewardedProgram


def short(program: RewardedProgram) -> float:
    return 1.0 / len(program.code.splitlines())


SHORT = Component("Programs of few lines.", short)
'''
ALGORITHM = """
    "mine": Algorithm("My own", "nowhere", "A = r", _estimator("grpo")),
"""
STYLE = '''
"""A script without input must print these lines."""

from dataclasses import dataclass

from sandbox.reading import Key, is_texts
from sandbox.styles.stdio import StdioAttempt
from sandbox.styles.style import Style


@dataclass(frozen=True)
class LinesTest:
    lines: tuple[str, ...]


LINES = Style(
    "lines",
    LinesTest,
    {"lines": Key("a list of texts", is_texts, required=True)},
    StdioAttempt,
    show=lambda test: " ".join(test.lines),
    payload=lambda test: {"stdin": "", "stdout": "\\n".join(test.lines)},
    has_entry_point=False,
)
'''
BACKEND = '''
"""Processes of this machine, under another name."""

from sandbox.backends import BackendKind
from sandbox.backends.local import LocalBackend, LocalChannel


class MineBackend(LocalBackend):
    def open(self, number: int, of: int) -> LocalChannel:
        channel = super().open(number, of)
        channel.where = "mine: "
        return channel


BACKEND = BackendKind(MineBackend)
'''
ENGINE = '''
"""Repeats the last message."""

from collections.abc import AsyncGenerator

from serving.completion import Delta, EngineRequest
from serving.engines import EngineKind


class Echo:
    def __init__(self, entry: object, settings: object) -> None:
        pass

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        yield Delta(0, request.chat[-1]["content"], 1, ending="stop", prompt_tokens=1)

    def close(self) -> None:
        pass


ENGINE = EngineKind(Echo)
'''
SENSOR = '''
"""Never starts a run."""

import dagster as dg

from pipelines.jobs import tell_mlflow


@dg.sensor(job=tell_mlflow)
def mine_sensor() -> dg.SkipReason:
    return dg.SkipReason("a test")
'''
PROFILE = """
extends: small
training:
  steps: 14
"""
LANGUAGE = '''
"""Scripts of the shell."""

from sandbox.languages.language import Language

SHELL = Language(
    "shell", "Shell", ("sh",), "program.sh", compile=("sh", "-n", "program.sh"),
    run=("sh", "program.sh"), example="read n; echo $n", idle=":", needs=("sh",),
)
'''
FILES = {
    "problems/sources/mine.py": SOURCE,
    "evaluation/benchmarks/mine.py": BENCHMARK,
    "evaluation/logs/mine.py": LOG,
    "cli/hello.py": COMMAND,
    "rewards/components/short.py": COMPONENT,
    "sandbox/backends/mine.py": BACKEND,
    "sandbox/styles/lines.py": STYLE,
    "serving/engines/echo.py": ENGINE,
    "pipelines/sensors/mine.py": SENSOR,
    "pipelines/profiles/mine.yaml": PROFILE,
    "sandbox/languages/shell.py": LANGUAGE,
}
SCORED = """
import json, sys
from rewards.composite import Reward
from rewards.config import RewardConfig
from problems.reading.own import own
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
from artifacts.hashing import content_of
from artifacts.integrity import hashes_of
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.config.serving import Serving
from serving.gateway.app import make_app

home, weights = Home(Path(sys.argv[1])), Path(sys.argv[1], "one")
weights.mkdir(parents=True)
(weights / "model.safetensors").write_bytes(b"weights")
Ledger(home.ledger).append(
    "promote", checkpoint="one", checkpoint_hash=content_of(hashes_of(weights)),
    path=str(weights), decision={}, run_id="chain-0001", against=None,
)
chat = {"model": "champion", "messages": [{"role": "user", "content": "Hello?"}]}
with TestClient(make_app(home, Serving(engine="echo"))) as client:
    answer = client.post("/v1/chat/completions", json=chat)
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


Test = Callable[..., None]
TESTS: dict[str, Test] = {}  # by the row of CONTRIBUTING's table


def adds(*changes: str) -> Callable[[Test], Test]:
    """Mark the test of these rows of CONTRIBUTING's table."""

    def marked(test: Test) -> Test:
        TESTS.update(dict.fromkeys(changes, test))
        return test

    return marked


def rows() -> dict[str, str]:
    """Return the files of each change in CONTRIBUTING's table."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| change | files |\n|---|---|\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE))


def missing(files: str) -> Iterator[str]:
    """Yield the paths of a row that do not exist, and the names that none of its files contains.

    A path may be relative to the folder of the one before it.
    """
    folder, text = ROOT, ""
    for name in re.findall(r"`([^`]+)`|\]\(([^)]+)\)", files):
        path = name[0] or name[1]
        if re.fullmatch(r"[\w/-]+(/|\.\w+)", path):
            file = next((base / path for base in (ROOT, folder) if (base / path).exists()), None)
            if file is None:
                yield path
                continue
            folder = file if file.is_dir() else file.parent
            for part in file.glob("*.*") if file.is_dir() else [file]:
                text += part.read_text(encoding="utf-8")
    for name, _ in re.findall(r"`(\w+)`()", files):
        if not re.search(rf"\b{name}\b", text):
            yield name


def test_every_row_that_promises_one_file_has_a_test() -> None:
    promised = {change for change, files in rows().items() if files.startswith("one ")}
    assert promised == TESTS.keys()
    cloned = {
        test
        for name, test in globals().items()
        if name.startswith("test_") and "clone" in inspect.signature(test).parameters
    }
    assert cloned == set(TESTS.values())


def test_every_row_names_what_exists() -> None:
    assert len(rows()) > 15
    assert not {change: [*lacking] for change, f in rows().items() if (lacking := [*missing(f)])}


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


@adds("a new command")
def test_a_command_is_one_file(clone: Path) -> None:
    assert ratchet(clone, "hello") == "hello\n"
    assert "Say hello." in ratchet(clone, "--help")


@adds("a new source of problems", "a new benchmark")
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


@adds("another tool's logs for `ratchet compare`")
@pytest.mark.slow
def test_a_format_of_logs_is_one_file(clone: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.json" for name in ("one", "two")]
    for file, right in zip(files, (0, 1), strict=True):
        file.write_text(json.dumps({f"t{i}": right for i in range(8)}))
    assert "two is better" in ratchet(clone, "compare", *map(str, files))


@adds("a new reward component")
@pytest.mark.slow
def test_a_reward_component_is_one_file(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = python(clone, "-c", SCORED, json.dumps(PROBLEM))
    assert scored.returncode == 0, scored.stderr
    value, gave = map(float, scored.stdout.split())
    assert value == 0.25
    assert gave == pytest.approx(0.25 * 0.5 / 1.5)
    monkeypatch.setenv("RATCHET_SET", "reward.weights.short=0.2")
    assert "short" in ratchet(clone, "config", "show")
    monkeypatch.setenv("RATCHET_SET", "reward.weights.shrot=0.2")
    refused = python(clone, "-m", "cli.main", "config", "show")
    assert refused.returncode == 2
    assert "reward.weights.shrot: no such key, did you mean 'short'" in refused.stderr


@adds("a new algorithm of verl")
@pytest.mark.slow
def test_an_algorithm_is_one_entry(clone: Path) -> None:
    shown = ratchet(clone, "train", "--algorithm", "mine", "--show")
    assert "My own (nowhere)" in shown
    assert "algorithm.adv_estimator=grpo" in shown


@adds("another place to run programs")
@pytest.mark.slow
def test_a_backend_of_the_sandbox_is_one_file(clone: Path) -> None:
    keys = ("style", "tests", "entry_point")
    problem = {key: PROBLEM[key] for key in keys if key in PROBLEM}
    program = {"id": 1, "source": PROBLEM["solutions"][0], "problem": problem}  # type: ignore[index]
    verdict = json.loads(
        ratchet(clone, "judge", "--backend", "mine", stdin=json.dumps(program) + "\n")
    )
    assert verdict["verdict"] == "AC", verdict
    assert verdict["isolation"].startswith("mine: "), verdict


@adds("another engine for the gateway")
@pytest.mark.slow
def test_an_engine_of_the_gateway_is_one_file(clone: Path, tmp_path: Path) -> None:
    answered = python(clone, "-c", SERVED, str(tmp_path / "home"))
    assert answered.stdout == "Hello?\n", answered.stderr


@adds("a new style of tests")
@pytest.mark.slow
def test_a_style_of_tests_is_one_file(clone: Path) -> None:
    problem = {"style": "lines", "tests": [{"lines": ["1", "2"]}]}
    sources = ("print(1); print(2)", "print(3)")
    lines = [json.dumps({"id": 1, "source": source, "problem": problem}) for source in sources]
    answers = map(json.loads, ratchet(clone, "judge", stdin="\n".join(lines)).splitlines())
    assert [answer["verdict"] for answer in answers] == ["AC", "WA"]
    record = {"problem_id": "own/1", "source": "own", "statement": "Print.", **problem}
    code = """
import json, sys
from problems.cleaning.similarity import tests
from problems.prompt import prompt_text
from problems.schema import from_record
from problems.verification.inputs import generate_inputs

problem = from_record(json.loads(sys.argv[1]), "")
print(problem.job("", "").tests, prompt_text(problem), generate_inputs(problem, 3), tests(problem))
"""
    used = python(clone, "-c", code, json.dumps(record | {"visible_tests": 1}))
    assert "LinesTest" in used.stdout, used.stderr


@adds("another language of programs")
@pytest.mark.slow
def test_a_language_is_one_file(clone: Path) -> None:
    tests = [{"stdin": "4", "stdout": "8"}]
    problem = {"style": "stdio", "language": "shell", "tests": tests}
    sources = ("read n; echo $((2 * n))", "read n; echo $n", "if")
    lines = [json.dumps({"id": 1, "source": source, "problem": problem}) for source in sources]
    answers = map(json.loads, ratchet(clone, "judge", stdin="\n".join(lines)).splitlines())
    assert [answer["verdict"] for answer in answers] == ["AC", "WA", "CE"]


@adds("a new sensor")
@pytest.mark.slow
def test_a_sensor_is_one_file(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    loaded = python(
        clone,
        "-c",
        "from pipelines.definitions import defs; print(*(s.name for s in defs.sensors))",
    )
    assert "mine_sensor" in loaded.stdout.split(), loaded.stderr


@adds("a new profile")
@pytest.mark.slow
def test_a_profile_is_one_file(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_PROFILE", "mine")
    assert re.search(r"training\.steps +14\b", ratchet(clone, "config", "show"))
