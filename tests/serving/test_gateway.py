"""The gateway over real HTTP, with real models: which version answers, and how."""

from __future__ import annotations

import json
import shutil
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from resources.config.serving import Serving
from resources.home import Home, NotReady
from resources.registry.ledger import Ledger
from serving.gateway.observations import Observations
from tests.serving.gateway_server import CHAT, ask, call, content, eventually, promote


def test_without_a_champion_every_endpoint_reports_it(url: str) -> None:
    paths = "/health", "/health/ready", "/v1/models"
    replies = [*(call(f"{url}{path}") for path in paths), ask(url)]
    assert [status for status, _ in replies] == [503, 503, 503, 503]
    assert all("ratchet demo" in body["error"]["message"] for _, body in replies)


def serves(url: str, name: str) -> None:
    """Wait until the version of this name is the champion that answers."""
    eventually(lambda: call(f"{url}/health/ready")[1].get("champion") == name)


def test_the_champion_has_its_name_its_number_and_an_alias(own: str) -> None:
    replies = [ask(own, model=model) for model in ("champion", "old", "1")]
    assert {(status, body["model"], content(body)) for status, body in replies} == {
        (200, "old", content(replies[0][1]))
    }
    assert [m["id"] for m in call(f"{own}/v1/models")[1]["data"]] == ["champion", "old"]


def test_requests_after_promotion_and_rollback_use_the_new_champion(
    url: str, home: Home, checkpoints: dict[str, Path]
) -> None:
    answers = []
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
        serves(url, name)
        answers.append(ask(url)[1])
    Ledger(home.ledger).rollback("a rollback")
    serves(url, "old")
    answers.append(ask(url)[1])
    assert [answer["model"] for answer in answers] == ["old", "new", "old"]
    assert content(answers[0]) == content(answers[2]) != content(answers[1])


def test_an_unloadable_champion_leaves_the_one_before_in_place(
    url: str, home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    promote(home, "old", checkpoints["old"])
    promote(home, "gone", tmp_path / "nowhere")
    state = eventually(
        lambda: s if "nowhere" in (s := call(f"{url}/health/ready")[1]).get("fault", "") else None
    )
    assert (state["status"], state["champion"]) == ("degraded", "old")
    assert ask(url)[1]["model"] == "old"


def test_a_champion_with_changed_weights_is_not_served(
    url: str, home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(checkpoints["old"], tmp_path / "copy")
    promote(home, "copied", copy)
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    eventually(lambda: str(copy) in ask(url)[1]["error"]["message"])
    assert ask(url)[0] == 503


def test_the_same_seed_gives_the_same_completion(served: str) -> None:
    texts = [content(ask(served, temperature=1.0, seed=seed)[1]) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_a_completion_ends_before_a_stop_string(served: str) -> None:
    whole = content(ask(served)[1])
    choice = ask(served, stop=[whole[3]])[1]["choices"][0]
    assert choice["message"]["content"] == whole[: whole.index(whole[3])]
    assert choice["finish_reason"] == "stop"


def streamed(url: str, **more: Any) -> list[dict[str, Any]]:
    """Return the events of a streamed chat."""
    body = json.dumps({"messages": CHAT, "max_tokens": 16, "stream": True} | more).encode()
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        *events, last, end = reply.read().decode().split("\n\n")
    assert last == "data: [DONE]"
    assert end == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_a_stream_has_the_text_of_the_whole_answer(served: str) -> None:
    whole = ask(served, temperature=1.0, seed=5, n=2)[1]
    events = streamed(served, temperature=1.0, seed=5, n=2, stream_options={"include_usage": True})
    texts = ["", ""]
    for event in events[:-1]:
        [choice] = event["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == [choice["message"]["content"] for choice in whole["choices"]]
    assert events[-1]["usage"] == whole["usage"]
    assert len(events) > 4


def test_logprobs_belong_to_the_tokens_of_the_text(served: str) -> None:
    choice = ask(served, logprobs=True, top_logprobs=2)[1]["choices"][0]
    tokens = choice["logprobs"]["content"]
    assert (
        b"".join(bytes(token["bytes"]) for token in tokens).decode()
        == (choice["message"]["content"])
    )
    # greedy: the token is the most likely one
    assert all(token["logprob"] == token["top_logprobs"][0]["logprob"] for token in tokens)


def test_every_answer_is_observed_once(own: str, home: Home) -> None:
    ids = [ask(own)[1]["id"].removeprefix("chatcmpl-") for _ in range(3)]
    streamed(own)
    rows = eventually(
        lambda: r if len(r := list(Observations(home.observations).read())) == 4 else None
    )
    assert [row.response for _, row in rows][:3] == ids
    assert all(
        row.error == "" and row.version == 1 and row.arm == "champion" and row.first_token_s
        for _, row in rows
    )


def test_feedback_is_recorded_for_a_known_response_only(own: str, home: Home) -> None:
    id = ask(own, user="ann")[1]["id"]
    vote = {"response": id, "value": "accepted"}
    eventually(lambda: call(f"{own}/feedback", vote)[0] == 200)
    assert call(f"{own}/feedback", vote | {"response": "chatcmpl-other"})[0] == 404
    votes = eventually(lambda: Observations(home.observations).votes_on(""))
    assert {vote.value for vote in votes} == {1.0}


@pytest.mark.parametrize(
    ("more", "status", "named"),
    [
        ({"model": "somebody else"}, 404, "somebody else"),
        ({"messages": []}, 400, "messages"),
        ({"logit_bias": {"5": 1}}, 400, "logit_bias"),
        ({"messages": [{"role": "user", "content": "x" * 500}]}, 400, "128 tokens"),
        ({"tools": [{"type": "function"}]}, 400, "tools"),
        ({"stream": True, "tests": {"cases": [{"stdout": ""}]}}, 400, "tests"),
    ],
)
def test_unsupported_options_are_refused_by_name(
    served: str, more: dict[str, Any], status: int, named: str
) -> None:
    got, body = ask(served, **more)
    assert got == status
    assert named in body["error"]["message"]


def test_a_port_in_use_is_reported() -> None:
    from serving.gateway.server import listen

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(NotReady, match=f"port {port} "):
            listen(Serving(), port, has_keys=True)


def test_other_machines_are_not_served_without_keys() -> None:
    from serving.gateway.server import listen

    with pytest.raises(NotReady, match="ratchet keys add"):
        listen(Serving(host="0.0.0.0"), 0, has_keys=False)
