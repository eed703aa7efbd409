"""Our overrides against verl's own schema: a key that verl does not know, or a plug-in that it cannot load, fails here and not in a run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verl_jobs.algorithms import NAMES
from verl_jobs.config import Training
from verl_jobs.overrides import environment, overrides
from verl_jobs.tiny_model import TinyModel, make

COMPOSE = """
import json, sys
from hydra import compose, initialize_config_module
from verl.plugin.platform import get_platform
from verl.utils.config import validate_config
from verl.utils.import_utils import load_class_from_fqn, load_extern_type
from verl.trainer.ppo.core_algos import get_adv_estimator_fn, get_policy_loss_fn
from verl.trainer.ppo.reward import resolve_reward_manager_cls
from verl.trainer.ppo.utils import need_critic, need_reference_policy
initialize_config_module(config_module="verl.trainer.config", version_base=None)
for told in json.load(sys.stdin):
    config = compose("ppo_trainer", overrides=told)
    sampler = config.trainer.v1.sampler.custom_sampler
    load_extern_type(sampler.path, sampler.name)  # registers our estimator too
    loop = config.actor_rollout_ref.rollout.agent.get("agent_loop_manager_class")
    if loop and get_platform().device_name == "cpu":
        load_class_from_fqn(loop, "AgentLoopManager")
    load_class_from_fqn(config.trainer.checkpoint_callback_class)
    get_adv_estimator_fn(config.algorithm.adv_estimator)
    get_policy_loss_fn(config.actor_rollout_ref.actor.policy_loss.loss_mode)
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    print("SAID", get_platform().device_name, resolve_reward_manager_cls(config).__name__, config.actor_rollout_ref.rollout.name, need_critic(config))
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_verl_takes_every_override(tmp_path: Path) -> None:
    runs = [Training(algorithm=name) for name in NAMES] + [Training(algorithm="rloo", kl_coefficient=0.01)]
    runs += [Training(schedule="cosine", warm_up_steps=2, importance_cap=2.0, kl_coefficient=0.01, kl_in="reward", kl_target=0.02)]
    make(TinyModel(), ["def solve(x): return x"], tmp_path / "model")
    paths = {"model": tmp_path / "model", "train": tmp_path / "a b.parquet", "validation": tmp_path / "v.parquet", "folder": tmp_path}
    told = [overrides(training, seed=1, loggers=["wandb"], name="t", **paths) for training in runs]
    run = subprocess.run(
        [sys.executable, "-c", COMPOSE],
        env=os.environ | environment(runs[0], tmp_path), input=json.dumps(told), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    said = [line for line in run.stdout.splitlines() if line.startswith("SAID")]
    assert said == [f"SAID cpu SandboxRewardManager hf_cpu {training.algorithm == 'ppo'}" for training in runs]


def test_every_key_is_told_once(tmp_path: Path) -> None:
    for name in NAMES:
        told = overrides(Training(algorithm=name), seed=1, model=tmp_path, train=tmp_path, validation=tmp_path, folder=tmp_path, loggers=[], name="t")
        keys = [line.lstrip("+").split("=")[0] for line in told]
        assert len(keys) == len(set(keys))
