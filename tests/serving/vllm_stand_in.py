"""A server with vLLM's command line for tests: the real tiny model behind Ratchet's own gateway.

`vllm serve FOLDER --host H --port P --served-model-name NAME ...`, from a script on the PATH.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from fastapi import APIRouter

from artifacts.hashing import hash_folder
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Ledger

ROOT = Path(__file__).parents[2]


def install(folder: Path) -> Path:
    """Write a program `vllm` into a folder for the PATH, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "vllm"
    program.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"runpy.run_path({__file__!r}, run_name='__main__')\n"
    )
    program.chmod(0o755)
    return folder


def main() -> None:
    from serving.gateway.app import make_app
    from serving.gateway.server import listen, server_of

    folder, options = Path(sys.argv[2]), sys.argv[3:]
    port = int(options[options.index("--port") + 1])
    name = options[options.index("--served-model-name") + 1]
    path = Path(tempfile.mkdtemp(prefix="ratchet-engine-"))
    try:
        home = Home(path)
        content = hash_folder(folder)
        Ledger(home.ledger).append(
            "install", checkpoint=name, checkpoint_hash=content, path=str(folder),
            decision={}, chain=f"chain-{name}", against=None,
        )  # fmt: skip
        health = APIRouter()
        health.add_api_route("/health", lambda: {"status": "ok"})
        settings = Serving()
        app = make_app(home, settings, pages=[health])
        server_of(app, settings).run(sockets=[listen(settings, port, has_keys=False)])
    finally:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main()
