"""Versions that are LoRA adapters of one base share a server process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from resources.config.serving import Serving
from resources.home import Home
from serving.completion import Engine, EngineRequest, complete
from serving.engines import engine_of
from serving.engines.transformers import TransformersEngine
from serving.server_versions import ADAPTER, Served, ServerProgram, base_of
from tests.children import children
from tests.serving import vllm_stand_in
from tests.serving.gateway_server import promote
from tests.serving.tiny_model import make_model

REQUEST = EngineRequest("double the number", 20)


@pytest.fixture
def versions(tmp_path: Path) -> dict[str, Path]:
    """Two adapters of one base, each beside its merged weights, as a training leaves them."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = make_model(tmp_path / "base", 3)
    folders = {}
    for seed, name in enumerate(("one", "two")):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(base)
        config = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"])
        adapted = get_peft_model(model, config)
        for parameter_name, parameter in adapted.named_parameters():
            if "lora_B" in parameter_name:
                torch.nn.init.normal_(parameter)
        adapted.save_pretrained(tmp_path / name / ADAPTER)
        vllm_stand_in.merged(base, tmp_path / name / ADAPTER, tmp_path / name)
        folders[name] = tmp_path / name
    return folders


async def text(engine: Engine) -> str:
    return (await complete(engine, REQUEST))[0].text


def test_the_rank_is_one_that_vllm_accepts(versions: dict[str, Path], tmp_path: Path) -> None:
    assert base_of(versions["one"]) == Served(str(tmp_path / "base"), "base", 8)


def test_without_its_base_the_merged_weights_are_served(
    versions: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "base").rename(tmp_path / "gone")
    assert base_of(versions["one"]) is None
    assert base_of(tmp_path / "gone") is None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_adapters_share_one_process_and_answer_as_their_merged_weights(
    home: Home, versions: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = vllm_stand_in.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    expected = {}
    for name, folder in versions.items():
        alone = TransformersEngine(folder)
        expected[name] = asyncio.run(text(alone))
        alone.close()
    assert expected["one"] != expected["two"]
    opens, settings = engine_of("vllm"), Serving(lora=True)
    engines = {
        name: opens(promote(home, name, folder), settings) for name, folder in versions.items()
    }
    [server] = children("--enable-lora")

    async def answers() -> None:
        assert {name: await text(engine) for name, engine in engines.items()} == expected
        await asyncio.to_thread(engines["one"].close)
        assert await text(engines["two"]) == expected["two"]
        await asyncio.to_thread(engines["two"].close)

    asyncio.run(answers())
    assert not server.is_running()
    assert not children("--enable-lora")


STUBBORN = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def do_POST(self):
        self.send_response(200 if self.path == "/load" else 400); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_a_process_ends_with_its_last_version_though_it_refuses_to_unload(
    home: Home, versions: dict[str, Path]
) -> None:
    program = ServerProgram(
        lambda served, settings, port: [sys.executable, "-c", STUBBORN, str(port)],
        adapter_model="{adapter}",
        load="/load",
        unload="/unload",
    )
    engine = program(promote(home, "one", versions["one"]), Serving(lora=True))
    before = psutil.Process().children()
    engine.close()
    assert len(psutil.Process().children()) == len(before) - 1
