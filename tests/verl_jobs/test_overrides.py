"""Our overrides against verl's own schema: a key that verl does not know, or a plug-in that it cannot load, fails here and not in a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verl_jobs.config import Training
from verl_jobs.overrides import environment, overrides

COMPOSE = """
import sys
from hydra import compose, initialize_config_module
with initialize_config_module(config_module="verl.trainer.config", version_base=None):
    config = compose("ppo_trainer", overrides=sys.argv[1:])
from verl.plugin.platform import get_platform
from verl.utils.import_utils import load_class_from_fqn
from verl.trainer.ppo.reward import resolve_reward_manager_cls
if get_platform().device_name == "cpu":
    load_class_from_fqn(config.actor_rollout_ref.rollout.agent.agent_loop_manager_class, "AgentLoopManager")
    from verl.workers.rollout import base
    assert ("hf_cpu", "async") in base._ROLLOUT_REGISTRY
load_class_from_fqn(config.trainer.checkpoint_callback_class)
print(get_platform().device_name, resolve_reward_manager_cls(config).__name__, config.actor_rollout_ref.rollout.name)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "said"),
    [
        (Training(), "cpu SandboxRewardManager hf_cpu"),
        (Training(algorithm="rloo", kl_coefficient=0.01), "cpu SandboxRewardManager hf_cpu"),
    ],
)
def test_verl_takes_every_override(training: Training, said: str, tmp_path: Path) -> None:
    told = overrides(
        training,
        seed=1,
        model=tmp_path,
        train=tmp_path / "a b.parquet",
        validation=tmp_path / "v.parquet",
        folder=tmp_path,
        loggers=["wandb"],
        name="t",
    )
    run = subprocess.run(
        [sys.executable, "-c", COMPOSE, *told], env=os.environ | environment(training, tmp_path), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip().splitlines()[-1] == said
