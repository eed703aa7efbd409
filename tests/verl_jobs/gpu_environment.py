"""GPU profiles composed by verl in another environment, without a GPU, weights or kernels."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from resources.capacity import shape_of_start
from resources.config.load import FOLDER, load_profile
from resources.config.profile import Profile
from verl_jobs.config.environment import environment
from verl_jobs.config.overrides import overrides
from verl_jobs.planner.shapes import SHAPES, ModelShape
from verl_jobs.sft.tiny_model import TinyModel, make

ROOT = Path(__file__).resolve().parents[2]

# The common part of the programs. `composed` yields each profile's name, the section of its policy
# and engine, and the GPUs of a node; `report` prints what the engine's own classes made of them.
COMPOSE = """
import json, sys
import ray
from hydra import compose, initialize_config_module

def composed():
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    initialize_config_module(config_module="verl.trainer.config", version_base=None)
    for name, lines in json.load(sys.stdin).items():
        config = compose("ppo_trainer", overrides=lines)
        reference, critic = need_reference_policy(config), need_critic(config)
        validate_config(config, use_reference_policy=reference, use_critic=critic)
        yield name, config.actor_rollout_ref, config.trainer.n_gpus_per_node

def report(name, section, model_config, tensor_parallel, memory, lora):
    print("MADE", json.dumps({
        "profile": name, "attention": section.model.override_config.attn_implementation,
        "dtype": str(model_config.dtype), "layers": model_config.hf_config.num_hidden_layers,
        "tensor_parallel": tensor_parallel, "memory": memory, "lora": lora,
    }), flush=True)
"""


def gpu_profiles(engine: str) -> dict[str, Profile]:
    """Return the profiles that train a named base on GPUs, and that of `ratchet gpu-acceptance`,
    with this engine.
    """
    stock = {path.stem: load_profile(path.stem) for path in sorted(FOLDER.glob("*.yaml"))}
    names = {name: name for name, each in stock.items() if each.training.engine == "vllm"}
    names["acceptance"] = str(ROOT / "experiments" / "acceptance" / "cuda.yaml")
    return {
        name: load_profile(place, [f"training.engine={engine}"]) for name, place in names.items()
    }


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


def reports(python: Path, program: str, lines: dict[str, list[str]]) -> list[dict[str, object]]:
    """Return what the program reports of each profile's overrides."""
    printed = run(python, COMPOSE + program, json.dumps(lines)).splitlines()
    return [json.loads(line.removeprefix("MADE ")) for line in printed if line.startswith("MADE ")]


def lines_of(profiles: dict[str, Profile], folder: Path) -> dict[str, list[str]]:
    """Return each profile's overrides. The model is the tiny one, or a folder that has the base's
    configuration and no weights of its size.
    """
    make(TinyModel(), ["def solve(x): return x"], folder / "tiny")
    paths = {each: folder / each for each in ("train", "validation", "folder")}
    lines = {}
    for name, profile in profiles.items():
        model = shutil.copytree(folder / "tiny", folder / name)
        if profile.base:
            configure(model / "config.json", SHAPES[profile.base.removesuffix("-Instruct")])
        lines[name] = overrides(
            profile.training, seed=1, model=model, loggers=[], name="t", **paths
        )
    return lines


def configure(path: Path, shape: ModelShape) -> None:
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


def expected(profiles: dict[str, Profile]) -> list[dict[str, object]]:
    """Return the reports that the profiles' settings demand."""
    return [_expected(name, profile) for name, profile in profiles.items()]


def _expected(name: str, profile: Profile) -> dict[str, object]:
    scale, lora, shape = profile.training.scale, profile.training.lora, shape_of_start(profile)
    assert shape is not None
    return {
        "profile": name,
        "attention": "sdpa",  # flash-attn is in none of the environments
        "dtype": "torch.bfloat16",
        "layers": shape.layers,
        "tensor_parallel": scale.tensor_parallel,
        "memory": scale.engine_memory,
        "lora": lora.rank if lora else 0,
    }
