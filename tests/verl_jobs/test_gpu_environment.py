"""The environment of requirements-gpu.lock: vLLM, and verl's server for it, take our overrides.

Installs the lock into `build/gpu` (or RATCHET_GPU_ENV) once: 16 GB. Needs no GPU: of vLLM's
platform, only the properties of a GPU are stated. No kernel runs, and no weights are loaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verl_jobs.gpu_environment import ROOT, expected, gpu_profiles, lines_of, reports, run
from verl_jobs.planner.shapes import GIB

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
DISK_GIB = 20

# verl's own server builds vLLM's command line, and vLLM's parser and config classes read it.
SERVE = """
import asyncio, torch
import vllm.platforms
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.platforms.interface import DeviceCapability, Platform, PlatformEnum
from verl.workers.rollout.replica import RolloutMode
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer

class A100(Platform):  # vLLM's own cannot be imported without NVIDIA's driver
    _enum = PlatformEnum.CUDA
    device_name = device_type = "cuda"
    dispatch_key, ray_device_key, dist_backend = "CUDA", "GPU", "nccl"
    device_control_env_var = "CUDA_VISIBLE_DEVICES"
    supported_dtypes = [torch.bfloat16, torch.float16, torch.float32]
    get_device_capability = classmethod(lambda cls, device_id=0: DeviceCapability(8, 0))
    get_device_name = classmethod(lambda cls, device_id=0: "NVIDIA A100-SXM4-80GB")
    get_device_total_memory = classmethod(lambda cls, device_id=0: 80 << 30)
    device_count = classmethod(lambda cls: 8)
    is_pin_memory_available = classmethod(lambda cls: True)
    is_cumem_allocator_available = lambda self: True

vllm.platforms.current_platform.__class__ = A100

class Server(vLLMHttpServer):
    async def run_server(self, args):  # verl's starts the engine with the same arguments
        self.made = AsyncEngineArgs.from_cli_args(args).create_engine_config()

for name, section, gpus in composed():
    server = Server(section.rollout, section.model, RolloutMode.HYBRID, [], 0, 0, gpus, 1, "0")
    asyncio.run(server.launch_server())
    made = server.made
    report(
        name, section, made.model_config, made.parallel_config.tensor_parallel_size,
        made.cache_config.gpu_memory_utilization,
        made.lora_config.max_lora_rank if made.lora_config else 0,
    )
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """Return the interpreter of the environment; create it where it does not exist."""
    folder = Path(os.environ.get("RATCHET_GPU_ENV", ROOT / "build" / "gpu"))
    interpreter, free = folder / "bin" / "python", shutil.disk_usage(ROOT).free / GIB
    if not interpreter.exists() and free < DISK_GIB:
        pytest.skip(f"needs {DISK_GIB} GiB of disk, and {free:.0f} are free")
    install = [sys.executable, str(ROOT / "deploy" / "install.py"), "gpu", str(folder)]
    subprocess.run(install, cwd=ROOT, check=True)
    return interpreter


def test_pip_finds_no_conflict(python: Path) -> None:
    subprocess.run([python, "-m", "pip", "check"], check=True)


def test_vllm_and_verl_s_server_for_it_can_be_imported(python: Path) -> None:
    program = (
        "import torch, vllm, verl, verl.workers.rollout.vllm_rollout.vllm_async_server;"
        "print('HAS', vllm.__version__, verl.__version__, torch.version.cuda)"
    )
    assert "HAS 0.31.0 0.9.1 13.0" in run(python, program)


def test_vllm_takes_the_arguments_of_every_gpu_profile(python: Path, tmp_path: Path) -> None:
    profiles = gpu_profiles("vllm")
    assert reports(python, SERVE, lines_of(profiles, tmp_path)) == expected(profiles)
