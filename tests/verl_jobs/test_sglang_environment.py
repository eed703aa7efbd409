"""An environment with SGLang: it and verl's server for it take our overrides.

Every release of SGLang pins one torch and one transformers, none of them ours. So the environment
has SGLang's, and all else that Ratchet requires. Installs into `build/sglang` (or
RATCHET_SGLANG_ENV) once, without a lock: 12 GB. Needs no GPU: no process of the engine is started.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.lock import direct_requirements
from tests.verl_jobs.gpu_environment import ROOT, expected, gpu_profiles, lines_of, reports, run
from verl_jobs.planner.shapes import GIB

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
DISK_GIB = 16
# the newest whose transformers verl 0.9.1 accepts (at least 5.5.3, below 5.11, not 5.6.0)
SGLANG = "sglang==0.5.14"
PINNED_BY_SGLANG = ("torch", "transformers")
# SGLang looks for a GPU only where no device is named
DEVICE = "+actor_rollout_ref.rollout.engine_kwargs.sglang.device=cuda"

# verl's own server makes SGLang's arguments, and SGLang checks them as at a start. Its command line
# has to make the same of them: it knows the permitted values, which the class does not check.
SERVE = """
import asyncio
from sglang.srt.entrypoints.engine import Engine
from sglang.srt.server_args import ServerArgs, prepare_server_args
from verl.workers.rollout.replica import RolloutMode
from verl.workers.rollout.sglang_rollout import async_sglang_server

class Checked(Exception):
    pass

class Recorded(ServerArgs):
    def __init__(self, **passed):
        self.passed = passed
        super().__init__(**passed)

def stop(cls, server_args, *_):  # SGLang's starts the engine's processes
    raise Checked(server_args)

def command_line(passed):
    for key, value in passed.items():
        if value is not None and value is not False:
            values = value if isinstance(value, list) else [] if value is True else [value]
            yield from ["--" + key.replace("_", "-"), *map(str, values)]

async_sglang_server.ServerArgs = Recorded
Engine._launch_scheduler_processes = classmethod(stop)
for name, section, gpus in composed():
    server = async_sglang_server.SGLangHttpServer(
        section.rollout, section.model, RolloutMode.HYBRID, [], 0, 0, 1, "0", 0
    )
    try:
        asyncio.run(server.launch_server())
    except Checked as checked:
        made = checked.args[0]
    parsed = prepare_server_args([*command_line(made.passed)])
    parsed.check_server_args()
    for key, value in made.passed.items():
        kept = getattr(made, key)
        assert kept == getattr(parsed, key), (name, key, kept, getattr(parsed, key))
        assert value is None or type(value)(kept) == value, (name, key, value, kept)
    report(
        name, section, made.get_model_config(), made.tp_size, made.mem_fraction_static,
        made.max_lora_rank if made.enable_lora else 0,
    )
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """Return the interpreter of the environment; create it where it is not complete."""
    folder = Path(os.environ.get("RATCHET_SGLANG_ENV", ROOT / "build" / "sglang"))
    interpreter, installed = folder / "bin" / "python", folder / "installed"
    if installed.exists() and installed.read_text(encoding="utf-8") == SGLANG:
        return interpreter
    if (free := shutil.disk_usage(ROOT).free / GIB) < DISK_GIB:
        pytest.skip(f"needs {DISK_GIB} GiB of disk, and {free:.0f} are free")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    others = [
        line
        for line in direct_requirements(ROOT / "pyproject.toml", extras=())
        if line.split("==")[0] not in PINNED_BY_SGLANG
    ]
    pip: list[str | Path] = [interpreter, "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    done = subprocess.run([*pip, SGLANG, *others], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install {SGLANG} beside Ratchet here: {done.stderr[-500:]}")
    subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
    installed.write_text(SGLANG, encoding="utf-8")
    return interpreter


def test_only_the_versions_that_sglang_pins_differ_from_ours(python: Path) -> None:
    done = subprocess.run(
        [python, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    conflicts = re.findall(r"^(\S+) \S+ has requirement (\w+)==", done.stdout, re.MULTILINE)
    assert sorted(conflicts) == [("ratchet-rl", name) for name in PINNED_BY_SGLANG], done.stdout
    assert len(done.stdout.splitlines()) == len(conflicts), done.stdout


def test_sglang_and_verl_s_server_for_it_can_be_imported(python: Path) -> None:
    program = (
        "import torch, sglang, verl, verl.workers.rollout.sglang_rollout.async_sglang_server;"
        "print('HAS', sglang.__version__, verl.__version__, torch.version.cuda)"
    )
    assert "HAS 0.5.14 0.9.1 13.0" in run(python, program)


def test_the_attention_of_sglang_s_own_flash_attn_4_is_not_named(python: Path) -> None:
    program = "from verl_jobs.config.engine_overrides import installed_attention as a; print(a())"
    assert run(python, program) == "sdpa\n"


def test_sglang_takes_the_arguments_of_every_gpu_profile(python: Path, tmp_path: Path) -> None:
    profiles = gpu_profiles("sglang")
    lines = {name: [*each, DEVICE] for name, each in lines_of(profiles, tmp_path).items()}
    assert reports(python, SERVE, lines) == expected(profiles)
