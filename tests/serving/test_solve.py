"""`ratchet solve` against real servers.

One is the project's own gateway with an untrained model; the other fixes what is reported to it.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.solve import Speech, solve
from resources.home import Home, NotReady
from resources.settings import Settings
from tests.serving.door import door_to, served

PROBLEM = (
    "Write double(x).\n\n## Examples\n```python\nassert double(1) == 2\n"
    "assert double(3) == 6\n```\n"
)
WRONG, RIGHT = (
    "```python\ndef double(x):\n    return x + 1\n```",
    "```python\ndef double(x):\n    return 2 * x\n```",
)


@contextmanager
def mender() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a server that writes a wrong program and fixes it when told what fails.

    It comments when asked to.
    """
    heard: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append(question)
            last = question["messages"][-1]["content"]
            text = (
                "Twice is not plus one."
                if last.endswith("wrong with this program.")
                else RIGHT
                if "got 4" in str(question)
                else WRONG
            )
            body = json.dumps(
                {"choices": [{"message": {"content": text}}], "usage": {"total_tokens": 9}}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", heard
    finally:
        # otherwise, if a test fails, its thread never ends
        server.shutdown()
        server.server_close()


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.md"
    path.write_text(PROBLEM, encoding="utf-8")
    return path


def told(
    problem: Path,
    *,
    model: str | None = None,
    endpoint: str | None = None,
    reviewer: str = "none",
    turns: int = 3,
) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=120)
    code = solve(
        problem,
        model,
        endpoint,
        "champion",
        reviewer,
        turns,
        Speech(tokens=40, temperature=0.0, seed=0),
        Settings.read(),
        console,
    )
    written = console.file
    assert isinstance(written, io.StringIO)
    return code, written.getvalue()


@pytest.mark.parametrize(
    "reviewer", ["none", "self", pytest.param("endpoint", marks=pytest.mark.slow)]
)
def test_a_model_that_heeds_the_report_solves_it_in_two_turns(problem: Path, reviewer: str) -> None:
    with mender() as (url, heard):
        code, said = told(
            problem, endpoint=url, reviewer=url if reviewer == "endpoint" else reviewer
        )
    voices = [
        line
        for line in said.splitlines()
        if line in ("Problem", "Generator", "Executor", "Reviewer")
    ]
    between = [] if reviewer == "none" else ["Reviewer"]
    assert code == 0 and voices == [
        "Problem",
        "Generator",
        "Executor",
        *between,
        "Generator",
        "Executor",
    ]
    assert said.endswith("all examples pass, after 2 programs\n") and len(heard) == len(between) + 2
    assert ("Twice is not plus one." in said) == bool(between)


def test_turns_bound_the_conversation(problem: Path) -> None:
    with mender() as (url, heard):
        code, said = told(problem, endpoint=url, turns=1)
    assert code == 1 and len(heard) == 1 and "no turn is left, after 1 program\n" in said


@pytest.mark.slow
def test_a_checkpoint_answers_here_and_behind_the_gateway_alike(
    problem: Path, tmp_path: Path
) -> None:
    from verl_jobs.sft.tiny_model import TinyModel, make

    # random weights: the model is untrained
    make(
        TinyModel(hidden=32, layers=1, heads=2, positions=1024),
        [RIGHT, PROBLEM],
        tmp_path / "model",
    )
    here, said = told(problem, model=str(tmp_path / "model"), turns=2)
    with served(tmp_path / "model", Home(tmp_path / "home")) as server, door_to(server) as door:
        there, heard = told(problem, endpoint=door.url, turns=2)
    assert (
        (here, said) == (there, heard) and here == 1 and "no turn is left, after 2 programs" in said
    )


@pytest.mark.parametrize("reviewer", [False, True])
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://http:nowhere/v1", "give one like http://127"),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1: ConnectError: see whether"),
    ],
)
def test_a_server_that_is_not_there_is_one_line_at_once(
    problem: Path, url: str, said: str, reviewer: bool
) -> None:
    with mender() as (there, heard), pytest.raises(NotReady, match=said):
        told(problem, endpoint=there if reviewer else url, reviewer=url if reviewer else "none")
    assert not heard


def test_a_folder_without_weights_is_one_line(problem: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}', encoding="utf-8"
    )
    with pytest.raises(NotReady, match=f"{tmp_path} holds no model that can answer"):
        told(problem, model=str(tmp_path))


def test_without_a_model_the_champion_is_asked_and_where_there_is_none_it_says_so(
    problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "empty"))
    with pytest.raises(NotReady, match="there is no champion yet: give --model"):
        told(problem)
