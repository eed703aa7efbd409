"""`ratchet data sample` asks a model for programs, and the problems they solve are kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.data.sample import data_sample
from evaluation.generation.openai_client import EndpointSource
from evaluation.sampling import Sampling
from problems.catalogue import add_source, read_sources
from problems.columns import ProblemError
from problems.sources.registry import load
from problems.verification.settings import Verification
from problems.verification.verification import verify
from resources.home import Home
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.problems.published_rows import ACECODE, FENCED, KODCODE

PROGRAMS = ("return 2 * n", "return n + n", "return n + 2")


@pytest.fixture
def writer() -> Iterator[str]:
    """Run a server that replies with each of the programs in turn."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(request["messages"][-1]["content"])
            program = f"def twice(n):\n    {PROGRAMS[len(seen) % 3]}"
            choice = {"message": {"content": FENCED.format(program)}, "finish_reason": "stop"}
            self._send({"choices": [choice], "usage": {"completion_tokens": 9}})

        def do_GET(self) -> None:
            self._send({"data": [{"id": "writer"}]})

        def _send(self, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    seen = list[str]()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def added(folder: Path, row: dict[str, Any]) -> Home:
    (folder / "rows.jsonl").write_text(json.dumps(row))
    add_source(folder / "home", "mine", folder / "rows.jsonl")
    return Home(folder / "home")


@pytest.mark.slow
def test_a_model_verifies_a_source_without_references(tmp_path: Path, writer: str) -> None:
    tests = [f"assert twice({n}) == {2 * n}" for n in (0, 1, 3, -5)]
    home = added(tmp_path, ACECODE | {"inferences": None, "test_cases": tests})
    endpoint = EndpointSource(writer, "writer", at_once=1)
    sampling = Sampling(n=6, temperature=0.8, max_new_tokens=64)
    assert data_sample("mine", endpoint, sampling, None, home, Console(quiet=True)) == 0
    [problem] = load("mine", read_sources(home.path)["mine"]).problems
    assert len(problem.samples) == 6
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        config = Verification(mutants=4, repeats=1)
        [kept] = verify([problem], sandbox, tmp_path / "journal.jsonl", config).problems
    assert kept.agreement == pytest.approx(4 / 6)


def test_sampling_again_repairs_a_source_whose_samples_are_gone(
    tmp_path: Path, writer: str
) -> None:
    home = added(tmp_path, ACECODE | {"inferences": None})
    endpoint = EndpointSource(writer, "writer", at_once=1)
    sampling = Sampling(n=2, temperature=0.8, max_new_tokens=64)

    def sample(n: int) -> Path:
        wanted = sampling.model_copy(update={"n": n})
        assert data_sample("mine", endpoint, wanted, None, home, Console(quiet=True)) == 0
        path = read_sources(home.path)["mine"].samples
        assert path
        return path

    first, second = sample(2), sample(3)
    assert first != second
    assert len(first.read_text().splitlines()) == 2
    second.unlink()
    assert len(sample(3).read_text().splitlines()) == 3


def test_empty_outputs_are_no_samples(
    tmp_path: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.FENCED", "")
    home = added(tmp_path, ACECODE | {"inferences": None})
    with pytest.raises(ProblemError, match="every output is empty"):
        data_sample("mine", EndpointSource(writer, "writer"), Sampling(), None, home, Console())


@pytest.mark.parametrize(("name", "message"), [("other", "'other'"), ("mine", "reference")])
def test_a_source_that_needs_no_samples_is_refused(tmp_path: Path, name: str, message: str) -> None:
    home = added(tmp_path, KODCODE)
    with pytest.raises(ProblemError, match=message):
        data_sample(name, EndpointSource("", ""), Sampling(), None, home, Console(quiet=True))
