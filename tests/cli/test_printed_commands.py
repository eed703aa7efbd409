"""Every printed command of README, tutorial and how-to pages runs as it is printed.

Each page has its own finished home, with real records, a tiny model and two champions, in a folder
with the files that the page prints or names. Curls and verdicts are real: a gateway runs where the
page starts one.

RATCHET_DEMO_HOME: a home that `make demo` has made; then each page has a copy of it.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from artifacts.store import Artifact
from evaluation.promotion.gate import Decision
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from resources.home import Home
from resources.ray.head import free_ports
from resources.registry.ledger import Kind, Ledger
from tests.cli.conftest import Called
from tests.cli.printed_commands import (
    BEFORE,
    EDITS,
    EXITS,
    MORE,
    NOT_RUN,
    PAGES,
    ROOT,
    SERVERS,
    UNLIKE,
    VARIES,
    Block,
    read,
)
from tests.evaluation.report_facts import facts_of
from tests.finished_home import RUN, write_home
from tests.journeys.demo_run import wait_until
from tests.journeys.own_rows import write_rows
from tests.journeys.test_ui import answers
from tests.problems.published_rows import KODCODE
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
DEMO = os.environ.get("RATCHET_DEMO_HOME")
PROFILE = "embedded" if DEMO else "small"
EXIT_CODES = EXITS | ({"ratchet why-not": "1"} if DEMO else {})  # a demo's only run is promoted
LOGS = ROOT / "tests" / "logs"
SQUARE = "def square(x):\n    return x * x"
STATED = {"task_id": "square", "prompt": "Write square(x)."}
ROWS: dict[str, list[dict[str, Any]]] = {
    "mbpp.jsonl": [
        {
            "task_id": 601,
            "text": "Write a function to double a number.",
            "code": "def double(x):\n    return 2 * x",
            "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
            "test_setup_code": "",
            "challenge_test_list": [],
        }
    ],
    "HumanEval.jsonl.gz": [
        {
            "task_id": "HumanEval/0",
            "prompt": 'def double(x):\n    """Return twice x."""\n',
            "entry_point": "double",
            "canonical_solution": "    return 2 * x\n",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n",
        }
    ],
    "KodCode-V1/data/rows.jsonl": [KODCODE],
    "tasks.jsonl": [
        {
            "problem_id": "square",
            "task_id": "square",
            "prompt": "Write square(x).",
            "statement": "Write square(x).",
            "style": "call",
            "entry_point": "square",
            "tests": [{"args": [2], "expected": 4}, {"args": [3], "expected": 9}],
            "solutions": [SQUARE],
        }
    ],
    "answers.jsonl": [
        {"task_id": "square", "completion": f"```python\n{SQUARE}\n```"},
        {"task_id": "square", "completion": "```python\ndef square(x):\n    return x + x\n```"},
    ],
    "old.jsonl": [STATED | {"completion": "def square(x): return x + x"}],
    "new.jsonl": [STATED | {"completion": SQUARE}],
    "choices.jsonl": [],
}
CSV = """problem_id,statement,style,entry_point,tests,solutions
double,"Write double(x), which returns twice x.",call,double,\
"[{""args"": [2], ""expected"": 4}, {""args"": [3], ""expected"": 6}]",def double(x): return 2 * x
"""


def matching(table: dict[str, str], command: str) -> str:
    """Return the value of the first pattern that the command begins with; "" without one."""
    return next((value for key, value in table.items() if re.match(key, command)), "")


@contextmanager
def server(command: str, folder: Path) -> Iterator[str]:
    """Run a command until the end of the page; yield its first output. Raises AssertionError if it
    does not start.
    """
    log, name = folder / "server.log", Path(sys.executable).with_name("ratchet")
    with log.open("w") as out:
        process = subprocess.Popen(
            [name, *shlex.split(command)[1:]],
            env=os.environ | {"RATCHET_HOME": str(folder / ".ratchet")},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(log.read_text()), 120)
        assert process.poll() is None, log.read_text()[-2000:]
        yield log.read_text()
    finally:
        process.terminate()  # a job in the background may ignore SIGINT
        process.wait(60)


def _answers(printed: str) -> bool:
    """Return whether a server has printed its address and answers there; with TLS, the first."""
    if not (address := re.search(r"(https?://127[.0-9]*:\d+)/", printed)):
        return False
    is_page = "/?token" in printed or address[1].startswith("https")
    return is_page or answers(f"{address[1]}/health/ready")


class Reader:
    """Somebody who types a page's commands in one folder, whose home is `.ratchet`."""

    def __init__(self, folder: Path, ratchet: Called, servers: ExitStack) -> None:
        self.folder, self.ratchet, self.servers = folder, ratchet, servers
        self.port = ""

    def type(self, command: str) -> tuple[int, str]:
        """Run one command; return its exit code and output."""
        command = re.sub(r"\s+# .*", "", command)
        for old, new in EDITS.items():
            command = re.sub(old, new, command)
        for pattern, more in MORE.items():
            command += f" {more}" if re.match(pattern, command) else ""
        home = self.folder / ".ratchet"
        if other := re.match(r"RATCHET_HOME=(\S+) (.*)", command, re.DOTALL):
            home, command = self.folder / other[1], other[2]
        if re.match(SERVERS, command):
            self.servers.close()
            self.port = str(free_ports(1)[0])
            command = command.replace("$PORT", self.port)
            return 0, self.servers.enter_context(server(command, self.folder))
        command = command.replace("$PORT", self.port).replace("\\\n", "")
        if command.startswith("ratchet "):
            for name in ("RATCHET_SET", "RATCHET_UNVERIFIED", "DAGSTER_HOME"):
                os.environ.pop(name, None)  # the command before set them
            os.environ["RATCHET_PROFILE"] = PROFILE
            code, output, errors = self.ratchet(home, *shlex.split(command)[1:])
            return int(str(code or 0)), output + errors
        run = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, text=True, capture_output=True, timeout=120
        )
        return run.returncode, run.stdout + run.stderr


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    problems = generate(FamilyConfig(demonstrations=4, train=24, validation=1))
    texts = [text for each in problems for text in (prompt_text(each), each.solutions[0])]
    folder = tmp_path_factory.mktemp("model")
    make(TinyModel(hidden=64, layers=2, positions=2048), texts, folder)
    return folder


@pytest.fixture
def reader(
    model: Path, tmp_path: Path, ratchet: Called, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / ".ratchet")
    if DEMO:
        shutil.copytree(DEMO, home.path, symlinks=True)
    else:
        write_home(home.path, model)
        shutil.rmtree(home.path / "datasets" / "difficulty_rankings")  # a placeholder without ranks
        fill_ledger(home)
    write_files(tmp_path, home)
    monkeypatch.setenv("RATCHET_PROFILE", PROFILE)  # of the servers too
    with ExitStack() as servers:
        yield Reader(tmp_path, ratchet, servers)


def fill_ledger(home: Home) -> None:
    """Install the warmed-up model, refuse the trained one, and promote it in another run."""
    ledger, store = Ledger(home.ledger), home.store()
    old, new = (store.require("checkpoints", name) for name in ("sft_checkpoint", RUN))
    few, many = ([number % every == 0 for number in range(120)] for every in (3, 2))
    refusal, promotion = facts_of(many, few).decision, facts_of(few, many).decision
    entries: list[tuple[Kind, Artifact, Decision, str]] = [
        ("install", old, refusal, f"{RUN}/first"),
        ("refuse", new, refusal, RUN),
        ("promote", new, promotion, "chain-0002"),
    ]
    for kind, artifact, decision, run_id in entries:
        ledger.append(
            kind,
            checkpoint=artifact.manifest.name,
            checkpoint_hash=artifact.content_hash,
            path=str(artifact.path),
            decision=decision.model_dump(mode="json"),
            run_id=run_id,
            against=None if kind == "install" else old.content_hash,
        )


def write_files(folder: Path, home: Home) -> None:
    """Write the files that pages name and do not print."""
    problems = generate(FamilyConfig(demonstrations=1, train=24, validation=1))
    for name in ("mine.jsonl", "problems.jsonl"):
        write_rows(problems, folder / name)
    (folder / "base").symlink_to(home.store().require("checkpoints", "chain-0001").path)
    for name in ("small.eval", "large.eval"):
        shutil.copy(LOGS / "inspect" / name, folder / name)
    for name in ("small", "large"):
        shutil.copytree(LOGS / "lm_eval" / name, folder / "out" / f"made__{name}")
    for name, rows in ROWS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (folder / "mine.csv").write_text(CSV)
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost"
    run = [*command.split(), "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(run, check=True, capture_output=True)


def test_every_command_runs_or_has_a_reason() -> None:
    shown = [text for page in PAGES for block in read(page).blocks for _, text in block.commands]
    bare = [re.sub(r"\s+# .*", "", text) for text in shown]
    known = r"(RATCHET_HOME=\S+ )?ratchet |curl " + "".join(f"|{pattern}" for pattern in NOT_RUN)
    assert not [text for text in bare if not re.match(known, text)]
    assert len(shown) > 140
    assert not [key for key in NOT_RUN if not any(re.match(key, text) for text in bare)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_printed_commands_of_a_page_run(path: Path, reader: Reader) -> None:
    page = read(path)
    for name, content in page.files.items():
        (reader.folder / name).write_text(content)
    faults = [fault for block in page.blocks for fault in faults_of(block, page.outputs, reader)]
    assert not faults, "\n".join(faults)


def faults_of(block: Block, outputs: dict[str, str], reader: Reader) -> Iterator[str]:
    """Type a block's commands; yield page, line and command of each that fails, and why."""
    whole, where = "", ""
    for line, command in block.commands:
        bare = re.sub(r"\s+# .*", "", command)
        if matching(NOT_RUN, bare):
            continue
        for pattern, before in BEFORE.items():
            if re.match(pattern, bare) and not (before == "ratchet serve" and reader.port):
                reader.type(before)
        code, output = reader.type(command)
        whole, where = whole + output, f"{block.page}:{line}: {command}"
        if code != int(matching(EXIT_CODES, command) or 0):
            yield f"{where}\n  exit code {code}: {output[-1500:]}"
        elif missing := missing_lines(command, outputs.get(bare, ""), output):
            yield f"{where}\n  does not print {missing}, but {output[-1500:]}"
    if where and (missing := missing_lines(block.commands[-1][1], block.output, whole)):
        yield f"{where}\n  does not print {missing}, but {whole[-1500:]}"


def missing_lines(command: str, expected: str, output: str) -> list[str]:
    """Return the expected lines that were not printed, cell by cell: a terminal's table is another.

    "…" stands for any text. Of an expected JSON reply only the keys count.
    """
    if matching(UNLIKE, command) or not expected:
        return []
    if expected.startswith("{"):
        keys, given = json.loads(expected).keys(), json.loads(output).keys()
        return sorted(keys - given)
    printed = " ".join(output.split())
    lines = [line for line in expected.splitlines() if not VARIES.search(line)]
    cells = [cell for line in lines for cell in re.split(r"\s{2,}|[│┃]", line)]
    return [
        cell for cell in cells if re.search(r"\w", cell) and not re.search(_pattern(cell), printed)
    ]


def _pattern(cell: str) -> str:
    return ".*".join(map(re.escape, re.split(r"…|\.\.\.", cell.strip())))
