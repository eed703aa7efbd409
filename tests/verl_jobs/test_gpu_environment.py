"""The environment of requirements-gpu.lock: vLLM, and verl's server for it, take our overrides.

Installs the lock into `build/gpu` (or RATCHET_GPU_ENV) once: 16 GB. Needs no GPU: of vLLM's
platform, only the properties of a GPU are stated. No kernel runs, and no weights are loaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resources.capacity import shape_of_start
from resources.config.load import FOLDER, load_profile
from resources.config.profile import Profile
from verl_jobs.config.environment import environment
from verl_jobs.config.overrides import overrides
from verl_jobs.planner.shapes import GIB, SHAPES, Shape
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
ROOT = Path(__file__).resolve().parents[2]
DISK_GIB = 20

# verl's own server builds vLLM's command line, and vLLM's parser and config classes read it.
SERVE = """
import asyncio, json, sys
import ray, torch
import vllm.platforms
from hydra import compose, initialize_config_module
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.platforms.interface import DeviceCapability, Platform, PlatformEnum
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config
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

ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
initialize_config_module(config_module="verl.trainer.config", version_base=None)
for name, lines in json.load(sys.stdin).items():
    config = compose("ppo_trainer", overrides=lines)
    reference, critic = need_reference_policy(config), need_critic(config)
    validate_config(config, use_reference_policy=reference, use_critic=critic)
    section, gpus = config.actor_rollout_ref, config.trainer.n_gpus_per_node
    server = Server(section.rollout, section.model, RolloutMode.HYBRID, [], 0, 0, gpus, 1, "0")
    asyncio.run(server.launch_server())
    made = server.made
    attention = section.model.override_config.attn_implementation
    rank = made.lora_config.max_lora_rank if made.lora_config else 0
    print("MADE", json.dumps({
        "profile": name, "attention": attention, "dtype": str(made.model_config.dtype),
        "layers": made.model_config.hf_config.num_hidden_layers,
        "tensor_parallel": made.parallel_config.tensor_parallel_size,
        "memory": made.cache_config.gpu_memory_utilization, "lora": rank,
    }), flush=True)
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


def run(python: Path, program: str, text: str = "") -> str:
    """Return what the program prints."""
    settings = {**environment(load_profile("gpu").training), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [python, "-c", program],
        input=text,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_pip_finds_no_conflict(python: Path) -> None:
    subprocess.run([python, "-m", "pip", "check"], check=True)


def test_vllm_and_verl_s_server_for_it_can_be_imported(python: Path) -> None:
    program = (
        "import torch, vllm, verl, verl.workers.rollout.vllm_rollout.vllm_async_server;"
        "print('HAS', vllm.__version__, verl.__version__, torch.version.cuda)"
    )
    assert "HAS 0.31.0 0.9.1 13.0" in run(python, program)


def test_vllm_takes_the_arguments_of_every_gpu_profile(python: Path, tmp_path: Path) -> None:
    profiles = {path.stem: load_profile(path.stem) for path in FOLDER.glob("*.yaml")}
    profiles = {
        name: each
        for name, each in profiles.items()
        if each.training.engine == "vllm" and each.base
    }
    profiles["acceptance"] = load_profile(str(ROOT / "experiments" / "acceptance" / "cuda.yaml"))
    make(TinyModel(), ["def solve(x): return x"], tmp_path / "tiny")
    lines = {name: lines_of(each, name, tmp_path) for name, each in profiles.items()}
    printed = run(python, SERVE, json.dumps(lines)).splitlines()
    made = [json.loads(line.removeprefix("MADE ")) for line in printed if line.startswith("MADE ")]
    assert made == [expected(name, each) for name, each in profiles.items()]


def lines_of(profile: Profile, name: str, folder: Path) -> list[str]:
    """Return the overrides. The model is the tiny one, or a folder that has the base's
    configuration and no weights.
    """
    model = shutil.copytree(folder / "tiny", folder / name)
    if profile.base:
        configure(model / "config.json", SHAPES[profile.base.removesuffix("-Instruct")])
    paths = {each: folder / each for each in ("train", "validation", "folder")}
    return overrides(profile.training, seed=1, model=model, loggers=[], name="t", **paths)


def configure(path: Path, shape: Shape) -> None:
    config = json.loads(path.read_text(encoding="utf-8")) | {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied,
        "max_position_embeddings": 32_768,
    }
    del config["layer_types"]
    path.write_text(json.dumps(config), encoding="utf-8")


def expected(name: str, profile: Profile) -> dict[str, object]:
    scale, lora, shape = profile.training.scale, profile.training.lora, shape_of_start(profile)
    assert shape is not None
    return {
        "profile": name,
        "attention": "sdpa",  # flash-attn is in neither environment
        "dtype": "torch.bfloat16",
        "layers": shape.layers,
        "tensor_parallel": scale.tensor_parallel,
        "memory": scale.engine_memory,
        "lora": lora.rank if lora else 0,
    }
