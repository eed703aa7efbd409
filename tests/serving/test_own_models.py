"""Checkpoints that come from elsewhere: without a chat template, or with one that refuses chats."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources.home import Home
from serving.gateway.observations import Observations
from tests.serving.gateway_server import ask, call, eventually, promote

REFUSING = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}{{ m.content }}{% endfor %}"
)


@pytest.fixture
def model(tmp_path: Path, checkpoints: dict[str, Path]) -> Path:
    return shutil.copytree(checkpoints["old"], tmp_path / "own")


def serve(url: str, home: Home, model: Path) -> None:
    promote(home, "own", model)
    eventually(lambda: call(f"{url}/health/ready")[0] == 200)


def test_a_base_model_completes_texts_and_says_why_it_has_no_chat(
    url: str, home: Home, model: Path
) -> None:
    (model / "chat_template.jinja").unlink()
    serve(url, home, model)
    assert call(f"{url}/v1/completions", {"prompt": "a", "max_tokens": 4})[0] == 200
    status, reply = ask(url)
    assert status == 400
    assert "no chat template: use /v1/completions" in reply["error"]["message"]


def test_a_chat_that_the_template_refuses_is_no_failure_of_the_version(
    url: str, home: Home, model: Path
) -> None:
    (model / "chat_template.jinja").write_text(REFUSING)
    serve(url, home, model)
    for _ in range(8):  # more than open the circuit breaker
        status, reply = ask(url, messages=[{"role": "system", "content": "be short"}])
        assert status == 400
        assert "no system role" in reply["error"]["message"]
    assert ask(url)[0] == 200
    rows = Observations(home.observations)
    eventually(lambda: len(list(rows.read())) == 9)
    assert [row.error for _, row in rows.read()][:8] == ["refused"] * 8
