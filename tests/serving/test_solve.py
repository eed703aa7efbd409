"""`ratchet solve` against real servers.

One is the project's own gateway with an untrained model; the other fixes what is reported to it.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.solve import WriterOptions, solve
from resources.home import Home, NotReady
from resources.settings import Settings
from tests.serving.faulty_proxy import proxy_to, served
from tests.serving.tiny_model import make_model

PROBLEM = (
    "Write double(x).\n\n## Examples\n```python\nassert double(1) == 2\n"
    "assert double(3) == 6\n```\n"
)
WRONG, RIGHT = (
    "```python\ndef double(x):\n    return x + 1\n```",
    "```python\ndef double(x):\n    return 2 * x\n```",
)


@contextmanager
def fixer() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a server that writes a wrong program, and a correct one after a report of its failure.

    It comments if the request asks for a review.
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


def solved(
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
        model=model,
        endpoint=endpoint,
        name="champion",
        reviewer=reviewer,
        turns=turns,
        tool_calls=0,
        options=WriterOptions(tokens=40, temperature=0.0, seed=0),
        settings=Settings.read(),
        console=console,
    )
    written = console.file
    assert isinstance(written, io.StringIO)
    return code, written.getvalue()


@pytest.mark.parametrize(
    "reviewer", ["none", "self", pytest.param("endpoint", marks=pytest.mark.slow)]
)
def test_a_model_that_uses_the_report_needs_two_turns(problem: Path, reviewer: str) -> None:
    with fixer() as (url, heard):
        code, output = solved(
            problem, endpoint=url, reviewer=url if reviewer == "endpoint" else reviewer
        )
    voices = [
        line
        for line in output.splitlines()
        if line in ("Problem", "Generator", "Executor", "Reviewer")
    ]
    between = [] if reviewer == "none" else ["Reviewer"]
    assert code == 0
    assert voices == [
        "Problem",
        "Generator",
        "Executor",
        *between,
        "Generator",
        "Executor",
    ]
    assert re.search(r"\b2 programs\n$", output)
    assert len(heard) == len(between) + 2
    assert ("Twice is not plus one." in output) == bool(between)


def test_the_number_of_turns_limits_the_conversation(problem: Path) -> None:
    with fixer() as (url, heard):
        code, output = solved(problem, endpoint=url, turns=1)
    assert code == 1
    assert len(heard) == 1
    assert re.search(r"\b1 program\n", output)


@pytest.mark.slow
def test_a_checkpoint_answers_equally_through_the_gateway(problem: Path, tmp_path: Path) -> None:
    from verl_jobs.sft.tiny_model import TinyModel, make

    # random weights: the model is untrained
    make(
        TinyModel(hidden=32, layers=1, heads=2, positions=1024),
        [RIGHT, PROBLEM],
        tmp_path / "model",
    )
    here, output = solved(problem, model=str(tmp_path / "model"), turns=2)
    with served(tmp_path / "model", Home(tmp_path / "home")) as server, proxy_to(server) as proxy:
        there, heard = solved(problem, endpoint=proxy.url, turns=2)
    assert (here, output) == (there, heard)
    assert here == 1
    assert re.search(r"\b2 programs\b", output)


@pytest.mark.slow
def test_a_conversation_that_fills_the_context_says_what_to_change(
    problem: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    make_model(folder, 1)  # 128 positions
    here = solved(problem, model=str(folder))
    with served(folder, Home(tmp_path / "home")) as server:
        assert solved(problem, endpoint=f"http://{server}/v1") == here
    assert here[0] == 1
    assert "no tokens are left, after 1 program" in here[1]
    assert "fewer --turns" in here[1]


@pytest.mark.parametrize("reviewer", [False, True])
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://http:nowhere/v1", "http://127"),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1: ConnectError"),
    ],
)
def test_an_unreachable_server_is_reported_at_once(
    problem: Path, url: str, message: str, reviewer: bool
) -> None:
    with fixer() as (there, heard), pytest.raises(NotReady, match=message):
        solved(problem, endpoint=there if reviewer else url, reviewer=url if reviewer else "none")
    assert not heard


def test_a_folder_without_weights_is_refused(problem: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}', encoding="utf-8"
    )
    with pytest.raises(NotReady, match=str(tmp_path)):
        solved(problem, model=str(tmp_path))


def test_without_model_and_champion_solve_is_refused(
    problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "empty"))
    with pytest.raises(NotReady, match="--model"):
        solved(problem)
