"""A server with vLLM's command line for tests: the real tiny model behind Ratchet's own gateway.

`vllm serve FOLDER --host H --port P --served-model-name NAME ...`, from a script on the PATH. It
loads LoRA adapters as vLLM does (`/v1/load_lora_adapter`), by merging them with PEFT.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, Body

from artifacts.hashing import hash_folder
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Ledger

ROOT = Path(__file__).parents[2]


def install(folder: Path) -> Path:
    """Write a program `vllm` into a folder for the PATH, and return the folder.

    Its homes are made there too, so that those of killed processes go with the test's folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "vllm"
    program.write_text(
        f"#!{sys.executable}\nimport runpy, sys, tempfile\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"tempfile.tempdir = {str(folder)!r}\n"
        f"runpy.run_path({__file__!r}, run_name='__main__')\n"
    )
    program.chmod(0o755)
    return folder


def merged(base: Path, adapter: Path, folder: Path) -> Path:
    """Write the base's weights with an adapter merged into them."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter)
    model.merge_and_unload().save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


def promote(ledger: Ledger, name: str, folder: Path) -> None:
    champion = ledger.champion()
    ledger.append(
        "promote" if champion else "install",
        checkpoint=name,
        checkpoint_hash=hash_folder(folder),
        path=str(folder),
        decision={},
        run_id=f"chain-{name}",
        against=champion.checkpoint_hash if champion else None,
    )


def main() -> None:
    from serving.gateway.app import make_app
    from serving.gateway.server import listen, server_of

    folder, options = Path(sys.argv[2]), sys.argv[3:]
    port = int(options[options.index("--port") + 1])
    name = options[options.index("--served-model-name") + 1]
    path = Path(tempfile.mkdtemp(prefix="ratchet-engine-"))
    try:
        home = Home(path)
        ledger = Ledger(home.ledger)
        promote(ledger, name, folder)

        def load_adapter(lora_name: str = Body(), lora_path: str = Body()) -> dict[str, str]:
            promote(ledger, lora_name, merged(folder, Path(lora_path), path / lora_name))
            load = f"http://127.0.0.1:{port}/models/{lora_name}/load"
            for _ in range(100):  # until the gateway has read its ledger
                with suppress(OSError), urllib.request.urlopen(load, b"", timeout=60):
                    return {"status": "ok"}
                time.sleep(0.1)
            raise RuntimeError(f"{lora_name} could not be loaded")

        def unload_adapter(lora_name: str = Body(embed=True)) -> dict[str, str]:
            print(f"adapter {lora_name} is unloaded", file=sys.stderr, flush=True)
            return {"status": "ok"}

        health = APIRouter()
        if "--enable-lora" in options and os.environ.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING"):
            health.add_api_route("/v1/load_lora_adapter", load_adapter, methods=["POST"])
            health.add_api_route("/v1/unload_lora_adapter", unload_adapter, methods=["POST"])
        health.add_api_route("/health", lambda: {"status": "ok"})
        settings = Serving()
        app = make_app(home, settings, pages=[health])
        server_of(app, settings).run(sockets=[listen(settings, port, has_keys=False)])
    finally:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main()
