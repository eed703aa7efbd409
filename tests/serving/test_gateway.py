"""The gateway over real HTTP, with real models: only the champion generates completions."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from artifacts.hashing import hash_folder
from resources.home import Home
from resources.registry.ledger import Ledger

CHAT = [{"role": "user", "content": "double the number"}]


def make_model(folder: Path, seed: int) -> Path:
    """Write a Qwen2 of a few thousand random parameters, as Hugging Face saves it.

    It has a byte tokenizer and a chat template.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    letters = {
        letter: at for at, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))
    } | {"<|end|>": 256}
    bare = Tokenizer(models.BPE(vocab=letters, merges=[]))
    bare.pre_tokenizer, bare.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare, eos_token="<|end|>", pad_token="<|end|>"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=257,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("checkpoints")
    return {name: make_model(base / name, seed) for seed, name in enumerate(("old", "new"))}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    import uvicorn

    from serving.gateway.app import HOST, make_app

    server = uvicorn.Server(uvicorn.Config(make_app(home), host=HOST, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the gateway ended instead of starting"
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join()


def promote(home: Home, name: str, path: Path) -> None:
    ledger = Ledger(home.ledger)
    champion = ledger.champion()
    against = champion.checkpoint_hash if champion else None
    ledger.append(
        "promote",
        checkpoint=name,
        checkpoint_hash=hash_folder(path),
        path=str(path),
        decision={},
        chain=f"chain-{name}",
        against=against,
    )


def call(url: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        url,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def ask(url: str, **more: Any) -> tuple[int, dict[str, Any]]:
    return call(f"{url}/v1/chat/completions", {"messages": CHAT, "max_tokens": 12} | more)


def test_without_a_champion_every_endpoint_reports_it(url: str) -> None:
    replies = [call(f"{url}/health"), call(f"{url}/v1/models"), ask(url)]
    assert [status for status, _ in replies] == [503, 503, 503]
    assert all("ratchet demo" in body["error"]["message"] for _, body in replies)


def test_the_champion_has_its_name_and_an_alias(
    url: str, home: Home, checkpoints: dict[str, Path]
) -> None:
    promote(home, "old", checkpoints["old"])
    (first, by_role), (second, by_name) = ask(url, model="champion"), ask(url, model="old")
    assert (first, second) == (200, 200) and by_role["model"] == by_name["model"] == "old"
    assert by_role["choices"] == by_name["choices"] and by_role["usage"]["completion_tokens"] > 0
    assert [m["id"] for m in call(f"{url}/v1/models")[1]["data"]] == ["champion", "old"]


def test_requests_after_promotion_and_rollback_use_the_new_champion(
    url: str, home: Home, checkpoints: dict[str, Path]
) -> None:
    promote(home, "old", checkpoints["old"])
    old = ask(url)[1]
    promote(home, "new", checkpoints["new"])
    new = ask(url)[1]
    Ledger(home.ledger).rollback("a rollback")
    back = ask(url)[1]
    assert (old["model"], new["model"], back["model"]) == ("old", "new", "old")
    assert old["choices"] == back["choices"] != new["choices"]


def test_a_rollback_replaces_an_unloadable_champion(
    url: str, home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    promote(home, "old", checkpoints["old"])
    promote(home, "gone", tmp_path / "nowhere")
    status, body = ask(url)
    assert (
        status == 503
        and "gone" in body["error"]["message"]
        and "nowhere" in body["error"]["message"]
    )
    Ledger(home.ledger).rollback("a rollback")
    assert ask(url)[0] == 200


def test_a_champion_with_changed_weights_is_not_served(
    url: str, home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(checkpoints["old"], tmp_path / "copy")
    promote(home, "copied", copy)
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    status, body = ask(url)
    assert status == 503 and str(copy) in body["error"]["message"]


def test_the_same_seed_gives_the_same_completion(
    url: str, home: Home, checkpoints: dict[str, Path]
) -> None:
    promote(home, "old", checkpoints["old"])
    texts = [
        ask(url, temperature=1.0, seed=seed)[1]["choices"][0]["message"]["content"]
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_completion_ends_before_a_stop_string(
    url: str, home: Home, checkpoints: dict[str, Path]
) -> None:
    promote(home, "old", checkpoints["old"])
    whole = ask(url)[1]["choices"][0]["message"]["content"]
    choice = ask(url, stop=[whole[3]])[1]["choices"][0]
    assert (
        choice["message"]["content"] == whole[: whole.index(whole[3])]
        and choice["finish_reason"] == "stop"
    )


@pytest.mark.parametrize(
    ("more", "status", "named"),
    [
        ({"model": "somebody else"}, 404, "somebody else"),
        ({"messages": []}, 400, "messages"),
        ({"stream": True}, 400, "stream"),
        ({"logit_bias": {}}, 400, "logit_bias"),
        ({"messages": [{"role": "user", "content": "x" * 500}]}, 400, "128 positions"),
    ],
)
def test_unsupported_options_are_refused_by_name(
    url: str,
    home: Home,
    checkpoints: dict[str, Path],
    more: dict[str, Any],
    status: int,
    named: str,
) -> None:
    promote(home, "old", checkpoints["old"])
    got, body = ask(url, **more)
    assert got == status and named in body["error"]["message"]


def test_a_port_in_use_is_reported(home: Home) -> None:
    from resources.home import NotReady
    from serving.gateway.app import HOST, serve

    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(NotReady, match=f"port {port} "):
            serve(home, port)


def test_the_gateway_listens_on_this_machine_only(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
