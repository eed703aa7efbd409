"""verl's schema accepts our overrides and loads the plug-ins that they name."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from resources.config.load import FOLDER, load_profile
from tests.children import python
from verl_jobs.config.agents import Agents
from verl_jobs.config.algorithms import NAMES
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.environment import environment
from verl_jobs.config.lora import Lora
from verl_jobs.config.overrides import overrides
from verl_jobs.config.scale import Distillation, Megatron, ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.config.validation import Validation
from verl_jobs.sft.tiny_model import TinyModel, make

COMPOSE = """
import json, sys
from hydra import compose, initialize_config_module
from verl.plugin.platform import get_platform
from verl.utils.config import omega_conf_to_dataclass, validate_config
from verl.utils.import_utils import load_class_from_fqn, load_extern_type
from verl.trainer.ppo.core_algos import get_adv_estimator_fn, get_policy_loss_fn
from verl.trainer.ppo.reward import resolve_reward_manager_cls
from verl.utils.dataset.rl_dataset import get_dataset_class
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
    # imports external_lib, as every worker does
    model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
    frozen = bool(model.override_config.get("frozen")), hasattr(model.hf_config, "frozen")
    print("FROZE", *frozen, model.lora_rank, model.target_modules)
    get_dataset_class(config.data)
    get_adv_estimator_fn(config.algorithm.adv_estimator)
    get_policy_loss_fn(config.actor_rollout_ref.actor.policy_loss.loss_mode)
    critic, engine = need_critic(config), config.actor_rollout_ref.rollout.name
    if model.lora_rank and engine == "vllm":  # verl asks vLLM, which is not installed, for a limit
        config.actor_rollout_ref.rollout.name = "sglang"
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=critic)
    manager = resolve_reward_manager_cls(config).__name__
    print("SAID", get_platform().device_name, manager, engine, critic)
"""

FSDP2 = [
    ScaleSettings(
        nodes=2,
        shards=4,
        reshard=False,
        offload="idle",
        updates=2,
        tensor_parallel=2,
        engine_memory=0.4,
        log_prob_tokens=40_000,
        fused_head=True,
    ),
    ScaleSettings(
        offload="always",
        accumulation=4,
        sequence_parallel=2,
        activation_checkpointing=False,
        precision="fp32",
    ),
]
PASSED = [
    ScaleSettings(megatron=Megatron(tensor_parallel=2, pipeline_parallel=2)),
    ScaleSettings(placement="colocated_async", distillation=Distillation(teacher="t", gpus=2)),
    ScaleSettings(
        placement="separate_async",
        engine_gpus=2,
        updates=4,
        distillation=Distillation(teacher="t", loss="k1"),
    ),
]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_verl_takes_every_override(tmp_path: Path) -> None:
    runs = [Training(algorithm=name) for name in NAMES] + [
        Training(algorithm="rloo", kl_coefficient=0.01)
    ]
    runs += [
        Training(
            schedule="cosine",
            warm_up_steps=2,
            importance_cap=2.0,
            kl_coefficient=0.01,
            kl_in="reward",
            kl_target=0.02,
        )
    ]
    runs += [Training(engine="vllm", ranks=8, algorithm="ppo", scale=scale) for scale in FSDP2]
    runs += [Training(engine="sglang", ranks=8, scale=scale) for scale in PASSED] + [
        Training(algorithm="ppo", trace=(2, 3))
    ]
    runs += [Training(curriculum=Curriculum(schedule="window")), Training(engine="transformers")]
    runs += [
        Training(agents=Agents(turns=2)),
        Training(agents=Agents(trains="reviewer", generator="a b")),
    ]
    runs += [
        Training(lora=Lora(rank=4, modules=("q_proj", "v_proj"))),
        Training(lora=Lora()),
        Training(frozen=("model.layers.[01].*",)),
    ]
    profiles = [load_profile(path.stem).training for path in sorted(FOLDER.glob("*.yaml"))]
    runs = profiles + runs
    make(TinyModel(), ["def solve(x): return x"], tmp_path / "model")
    paths = {
        "model": tmp_path / "model",
        "train": tmp_path / "a b.parquet",
        "validation": tmp_path / "v.parquet",
        "folder": tmp_path,
    }
    lines = [overrides(training, seed=1, loggers=["wandb"], name="t", **paths) for training in runs]
    run = python("-c", COMPOSE, text=json.dumps(lines), env=environment(Training()))
    assert run.returncode == 0, run.stderr[-2000:]
    managers = [line for line in run.stdout.splitlines() if line.startswith("SAID")]
    engines = {"hf": "hf_cpu"}
    assert managers == [
        f"SAID cpu SandboxRewardManager {engines.get(training.engine, training.engine)} "
        f"{training.algorithm == 'ppo'}"
        for training in runs
    ]
    froze = [
        line.removeprefix("FROZE ") for line in run.stdout.splitlines() if line.startswith("FROZE")
    ]
    assert froze[-3:] == [
        "False False 4 ['q_proj', 'v_proj']",
        "False False 8 all-linear",
        "True False 0 all-linear",
    ]


def settings_of(training: Training, folder: Path) -> dict[str, str]:
    paths = dict.fromkeys(("model", "train", "validation", "folder"), folder)
    lines = overrides(training, seed=1, loggers=[], name="t", **paths)
    return {line.partition("=")[0]: line.partition("=")[2] for line in lines}


def test_an_override_of_the_user_replaces_ours(tmp_path: Path) -> None:
    key = "actor_rollout_ref.rollout.agent.agent_loop_manager_class"
    added = "actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_seqs"
    settings = settings_of(
        Training(verl=("trainer.total_epochs=3", f"+{key}=mine.Manager", f"+{added}=64")), tmp_path
    )
    assert settings["++trainer.total_epochs"] == "3"
    assert "trainer.total_epochs" not in settings
    assert settings[f"++{key}"] == "mine.Manager"
    assert f"+{key}" not in settings
    assert settings[f"++{added}"] == "64"


@pytest.mark.parametrize("value", ["fsdp", "'fsdp'", "torchtitan"])
@pytest.mark.parametrize("name", ["actor_rollout_ref.actor.strategy", "critic.strategy"])
def test_a_strategy_whose_saves_would_fail_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}=\\w+ .* fsdp2, .* remove the override"):
        Training(verl=(f"{name}={value}",))


def test_the_strategy_of_ours_may_be_named() -> None:
    line = "actor_rollout_ref.actor.strategy"
    assert Training(verl=(f"{line}=fsdp2",)).verl
    megatron = ScaleSettings(megatron=Megatron())
    assert Training(engine="vllm", verl=(f"{line}=megatron",), scale=megatron).verl


@pytest.mark.parametrize("value", ["True", "true", "on"])
def test_an_entropy_that_verl_does_not_measure_is_refused(value: str) -> None:
    bypass = f"algorithm.rollout_correction.bypass_mode={value}"
    with pytest.raises(ValidationError, match=r"training\.entropy_target"):
        Training(entropy_target=0.2, verl=(bypass,))
    assert Training(verl=(bypass,)).verl
    assert Training(entropy_target=0.2, verl=(bypass.replace(f"={value}", "=false"),))


@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "dr_grpo"])
def test_clip_higher_and_dynamic_sampling_are_for_any_algorithm(
    algorithm: str, tmp_path: Path
) -> None:
    plain = settings_of(Training(algorithm=algorithm), tmp_path)
    assert "algorithm.filter_groups.enable" not in plain
    assert plain["actor_rollout_ref.actor.clip_ratio_high"] == "0.2"
    settings = settings_of(
        Training(algorithm=algorithm, clip_high=0.28, dynamic_sampling=True, overlong="mask"),
        tmp_path,
    )
    assert settings["actor_rollout_ref.actor.clip_ratio_low"] == "0.2"
    assert settings["actor_rollout_ref.actor.clip_ratio_high"] == "0.28"
    assert settings["algorithm.filter_groups.enable"] == "True"
    assert "most_dropped:96" in settings["+trainer.v1.sampler.sampler_kwargs"]
    assert "masked:True" in settings["+trainer.v1.sampler.sampler_kwargs"]


def test_validation_is_greedy_unless_it_is_sampled(tmp_path: Path) -> None:
    key = "actor_rollout_ref.rollout.val_kwargs"
    greedy = settings_of(Training(), tmp_path)
    assert (greedy[f"{key}.do_sample"], greedy[f"{key}.n"]) == ("False", "1")
    sampled = settings_of(Training(validation=Validation(n=4, temperature=0.6)), tmp_path)
    assert (sampled[f"{key}.do_sample"], sampled[f"{key}.temperature"]) == ("True", "0.6")


def test_every_override_key_occurs_once(tmp_path: Path) -> None:
    for name in NAMES:
        lines = overrides(
            Training(algorithm=name),
            seed=1,
            model=tmp_path,
            train=tmp_path,
            validation=tmp_path,
            folder=tmp_path,
            loggers=[],
            name="t",
        )
        keys = [line.lstrip("+").split("=")[0] for line in lines]
        assert len(keys) == len(set(keys))
