"""Synthesis with a real model behind a proxy that fails in every way that HTTP can.

Garbage is rejected with a named reason, and nothing is requested twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from artifacts.integrity import CorruptArtifact
from artifacts.json_lines import line_of
from problems.schema import Problem
from problems.synthesis.endpoint import TRIES, Endpoint
from problems.synthesis.replies import EndpointDown, NoReply, Replies, Reply
from problems.synthesis.settings import Synthesis
from problems.synthesis.synthesize import synthesize
from resources.home import Home
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.serving.faulty_proxy import FAULTS, FaultyProxy, proxy_to, served

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
def proxy(gateway: str) -> Iterator[FaultyProxy]:
    with proxy_to(gateway) as opened:
        yield opened


def opened(proxy: FaultyProxy) -> Endpoint:
    return Endpoint(proxy.url, timeout_s=20.0, pause_s=0.001)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as up:
        yield up


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_fails_only_its_own_request(proxy: FaultyProxy, fault: str) -> None:
    proxy.faults = [fault] * TRIES
    with opened(proxy) as endpoint:
        with pytest.raises(NoReply, match=rf"\b{TRIES} tries"):
            endpoint.ask(ASK)
        assert endpoint.ask(ASK)


def test_an_unreachable_server_ends_the_pass(proxy: FaultyProxy) -> None:
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


def test_an_unknown_model_but_no_long_prompt_ends_the_pass(proxy: FaultyProxy) -> None:
    with opened(proxy) as endpoint:
        with pytest.raises(NoReply, match="status 400"):
            endpoint.ask(ASK | {"messages": [{"role": "user", "content": "word " * 4000}]})
        with pytest.raises(EndpointDown, match="model"):
            endpoint.ask(ASK | {"model": "nobody"})


def test_the_api_key_comes_from_the_environment_only(
    proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-other")
    monkeypatch.setenv("RATCHET_OPENAI_API_KEY", "the-key")
    with opened(proxy) as endpoint, Replies(tmp_path / "replies.jsonl", endpoint) as replies:
        assert endpoint._client.headers["Authorization"] == "Bearer the-key"
        replies.ask(ASK)
        assert "the-key" not in repr(endpoint) + (tmp_path / "replies.jsonl").read_text(
            encoding="utf-8"
        )


def synthesized(
    proxy: FaultyProxy, journal: Path, sandbox: Sandbox, config: Synthesis = CONFIG
) -> Any:
    with opened(proxy) as endpoint, Replies(journal, endpoint) as replies:
        return synthesize([SEED], config, 1, replies, sandbox)


def test_output_of_a_random_model_is_rejected_with_reasons(
    proxy: FaultyProxy, sandbox: Sandbox, tmp_path: Path
) -> None:
    proxy.faults = [*FAULTS, "", *FAULTS]
    result = synthesized(proxy, tmp_path / "replies.jsonl", sandbox)
    assert result.problems == []
    assert result.stage.came_in == CONFIG.requests == result.questions
    assert {row.reason for row in result.refused} <= {"no section problem"}
    assert len({row.problem_id for row in result.refused}) == CONFIG.requests


def test_a_resumed_pass_requests_nothing_twice(
    proxy: FaultyProxy, sandbox: Sandbox, tmp_path: Path
) -> None:
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    first = synthesized(proxy, whole, sandbox)
    lines = whole.read_bytes().splitlines(keepends=True)
    # killed while writing a line
    torn.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    proxy.heard.clear()
    again = synthesized(proxy, torn, sandbox)
    assert sum(proxy.heard.values()) == len(lines) - 5
    assert set(proxy.heard.values()) == {1}
    assert again.stage == first.stage
    assert again.questions == first.questions
    # each request has its own seed, so the model repeats its reply
    assert sorted(torn.read_bytes().splitlines()) == sorted(whole.read_bytes().splitlines())
    proxy.heard.clear()
    assert synthesized(proxy, whole, sandbox) == first
    assert not proxy.heard


def test_the_budget_ends_the_pass(proxy: FaultyProxy, sandbox: Sandbox, tmp_path: Path) -> None:
    assert (
        synthesized(
            proxy, tmp_path / "a", sandbox, CONFIG.model_copy(update={"requests": 4})
        ).questions
        == 4
    )
    assert (
        synthesized(
            proxy, tmp_path / "b", sandbox, CONFIG.model_copy(update={"tokens": 1})
        ).questions
        == 4
    )


def test_a_broken_line_of_the_journal_is_reported(tmp_path: Path) -> None:
    line = line_of({"question": "a", "text": "b", "tokens": 1})
    (tmp_path / "replies").write_bytes(line + b"{}\n")
    with pytest.raises(CorruptArtifact, match="line 2"), Replies(tmp_path / "replies", _Never()):
        pass


class _Never:
    def ask(self, question: Any) -> Reply:
        raise AssertionError("nothing is asked here")
