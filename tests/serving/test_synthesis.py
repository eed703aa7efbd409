"""Synthesis with a real model behind a proxy that fails in every way that HTTP can.

Garbage is rejected with a named reason, and nothing is requested twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from problems.schema import Problem, write_parquet
from problems.synthesis.endpoint import TRIES, Endpoint
from problems.synthesis.replies import EndpointDown, NoReply, Replies, Reply
from problems.synthesis.synthesize import AT_ONCE, Synthesis, synthesize
from resources.home import Home
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.serving.door import FAULTS, Door, door_to, served

SEED = Problem(
    "toy/1",
    "toy",
    "Write f(x).",
    "call",
    ({"args": [1], "expected": 2},),
    "f",
    solutions=("def f(x):\n    return x + 1\n",),
    licence="MIT",
)
CONFIG = Synthesis(
    endpoint="here", model="champion", problems=3, answers=2, max_tokens=24, requests=12
)
ASK = {"model": "champion", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from verl_jobs.sft.tiny_model import TinyModel, make

    base = tmp_path_factory.mktemp("synthesis")
    # random weights: the model is untrained
    make(
        TinyModel(hidden=32, layers=1, heads=2, positions=1024), [SEED.solutions[0]], base / "model"
    )
    with served(base / "model", Home(base / "home")) as server:
        yield server


@pytest.fixture
def door(gateway: str) -> Iterator[Door]:
    with door_to(gateway) as made:
        yield made


def opened(door: Door) -> Endpoint:
    return Endpoint(door.url, timeout_s=20.0, pause_s=0.001)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as up:
        yield up


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_costs_another_try_and_nothing_else(door: Door, fault: str) -> None:
    door.faults = [fault, fault]
    with opened(door) as endpoint:
        reply = endpoint.ask(ASK)
    assert reply.tokens > 0 and endpoint.sent == 3 and sum(endpoint.faults.values()) == 2


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_leaves_the_question_without_an_answer_and_the_next_has_one(
    door: Door, fault: str
) -> None:
    door.faults = [fault] * TRIES
    with opened(door) as endpoint:
        with pytest.raises(NoReply, match=f"no whole answer in {TRIES} tries"):
            endpoint.ask(ASK)
        assert endpoint.ask(ASK)


def test_a_server_that_says_nothing_for_too_long_is_given_up(door: Door) -> None:
    import socket

    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", 0.05, pause_s=0.001) as endpoint,
        pytest.raises(NoReply, match="ReadTimeout"),
    ):
        endpoint.ask(ASK)


def test_a_server_that_is_down_ends_the_pass_and_is_named(door: Door) -> None:
    with Endpoint("http://127.0.0.1:9/v1", pause_s=0.001) as endpoint:
        for _ in range(2):
            with pytest.raises(NoReply):
                endpoint.ask(ASK)
        with pytest.raises(EndpointDown, match=r"http://127\.0\.0\.1:9/v1: ConnectError"):
            endpoint.ask(ASK)
        sent = endpoint.sent
        with pytest.raises(EndpointDown):
            endpoint.ask(ASK)
        assert endpoint.sent == sent  # no further request is sent to it


def test_a_model_that_the_server_does_not_know_ends_the_pass_and_a_question_that_is_too_long_does_not(  # noqa: E501, RUF100
    door: Door,
) -> None:
    with opened(door) as endpoint:
        with pytest.raises(NoReply, match="status 400"):
            endpoint.ask(ASK | {"messages": [{"role": "user", "content": "word " * 4000}]})
        with pytest.raises(EndpointDown, match="check the address"):
            endpoint.ask(ASK | {"model": "nobody"})


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    door: Door, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-other")
    monkeypatch.setenv("RATCHET_OPENAI_API_KEY", "the-key")
    with opened(door) as endpoint, Replies(tmp_path / "replies.jsonl", endpoint) as replies:
        assert endpoint._client.headers["Authorization"] == "Bearer the-key"
        replies.ask(ASK)
        assert "the-key" not in repr(endpoint) + (tmp_path / "replies.jsonl").read_text(
            encoding="utf-8"
        )


def synthesized(door: Door, journal: Path, sandbox: Sandbox, config: Synthesis = CONFIG) -> Any:
    with opened(door) as endpoint, Replies(journal, endpoint) as replies:
        return synthesize([SEED], config, 1, replies, sandbox)


def test_what_a_random_model_says_is_refused_by_name_and_nothing_is_lost(
    door: Door, sandbox: Sandbox, tmp_path: Path
) -> None:
    door.faults = [*FAULTS, "", *FAULTS]
    found = synthesized(door, tmp_path / "replies.jsonl", sandbox)
    assert found.made == [] and found.stage.came_in == CONFIG.requests == found.questions
    assert {row.reason for row in found.refused} <= {"no section problem"} and len(
        {row.problem_id for row in found.refused}
    ) == CONFIG.requests


def test_a_pass_that_is_taken_up_again_asks_for_nothing_twice(
    door: Door, sandbox: Sandbox, tmp_path: Path
) -> None:
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    first = synthesized(door, whole, sandbox)
    lines = whole.read_bytes().splitlines(keepends=True)
    # killed while writing a line
    torn.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    door.heard.clear()
    again = synthesized(door, torn, sandbox)
    assert sum(door.heard.values()) == len(lines) - 5 and set(door.heard.values()) == {1}
    assert again.stage == first.stage and again.questions == first.questions
    # each request has its own seed, so the model repeats its reply
    assert sorted(torn.read_bytes().splitlines()) == sorted(whole.read_bytes().splitlines())
    door.heard.clear()
    assert synthesized(door, whole, sandbox) == first and not door.heard


PASS = """
import sys
from pathlib import Path
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import Replies
from problems.schema import read_parquet
from problems.synthesis.synthesize import Synthesis, synthesize
from sandbox.sandbox import Sandbox, SandboxConfig
with Endpoint(sys.argv[1]) as endpoint, Replies(Path(sys.argv[2]), endpoint) as replies, \
Sandbox(SandboxConfig(workers=1)) as sandbox:
    synthesize(read_parquet(Path(sys.argv[3])), Synthesis.model_validate_json(sys.argv[4]), \
1, replies, sandbox)
"""


@pytest.mark.slow
def test_a_pass_that_is_killed_repeats_at_most_what_was_under_way(
    door: Door, sandbox: Sandbox, tmp_path: Path
) -> None:
    journal, seeds, door.wait_s = tmp_path / "replies.jsonl", tmp_path / "seeds.parquet", 1.0
    write_parquet([SEED], seeds)
    arguments = [door.url, str(journal), str(seeds), CONFIG.model_dump_json()]
    killed = subprocess.Popen(
        [sys.executable, "-c", PASS, *arguments], cwd=Path(__file__).parents[2]
    )
    while sum(door.heard.values()) < 6:
        assert killed.poll() is None, "it ended before it was killed"
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = journal.read_bytes().count(b"\n")
    door.wait_s = 0.0
    found = synthesized(door, journal, sandbox)
    assert found.stage.came_in == CONFIG.requests and 0 < kept < CONFIG.requests
    assert sum(door.heard.values()) - CONFIG.requests <= AT_ONCE and max(door.heard.values()) <= 2


def test_the_budget_ends_the_pass(door: Door, sandbox: Sandbox, tmp_path: Path) -> None:
    assert (
        synthesized(
            door, tmp_path / "a", sandbox, CONFIG.model_copy(update={"requests": 4})
        ).questions
        == 4
    )
    assert (
        synthesized(
            door, tmp_path / "b", sandbox, CONFIG.model_copy(update={"tokens": 1})
        ).questions
        == 4
    )


def test_a_broken_line_of_the_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / "replies").write_text(
        json.dumps({"question": "a", "text": "b", "tokens": 1}) + "\n{}\n", encoding="utf-8"
    )
    with pytest.raises(ValueError, match="line 2"), Replies(tmp_path / "replies", _Never()):
        pass


class _Never:
    def ask(self, question: Any) -> Reply:
        raise AssertionError("nothing is asked here")
