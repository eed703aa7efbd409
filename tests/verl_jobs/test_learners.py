"""The configs that verl's v1 trainer passes to its workers contain our settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.children import python
from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.config.environment import environment
from verl_jobs.config.scale import ScaleSettings, token_budget
from verl_jobs.config.training import Training
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HANDED = """
import dataclasses, inspect, json, sys
from types import SimpleNamespace
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.utils import Role
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.workers.engine_workers import ActorRolloutRefWorker


class Handed(Exception):
    pass


def begun(**given):
    raise Handed(given.get("class_dict") or given["config"])


trainer_base.create_colocated_worker_cls = begun


class Trainer(PPOTrainerSync):  # verl's own `_setup`, without data, tokenizer or Ray
    _init_tokenizer = _init_dataloader = _init_dump_executor = lambda self: None

    def _init_resource_pool_mgr(self):
        self.role_worker_mapping = {Role.ActorRolloutRef: None, Role.Critic: None}
        pool = "pool"
        self.resource_pool_manager = SimpleNamespace(
            create_resource_pool=lambda: None,
            resource_pool_dict={pool: pool},
            get_resource_pool=lambda role: pool,
        )


def critic(config):
    trainer = object.__new__(Trainer)
    trainer.config, trainer.use_critic, trainer.use_reference_policy = config, True, True
    try:
        trainer._setup()
    except Handed as handed:
        return handed.args[0]["critic"].kwargs["config"]


def learner(config, role):
    worker = SimpleNamespace(
        config=config.actor_rollout_ref,
        role=role,
        distillation_enabled=False,
        _omega_profiler_config=None,
        actor_worker_cls=begun,
        ref_worker_cls=begun,
    )
    try:
        inspect.unwrap(ActorRolloutRefWorker.init_model)(worker)
    except Handed as handed:
        return handed.args[0]


initialize_config_module(config_module="verl.trainer.config", version_base=None)
for told in json.load(sys.stdin):
    config = compose("ppo_trainer", overrides=told)
    OmegaConf.resolve(config)
    control = core_algos.get_kl_controller(config.algorithm.kl_ctrl)
    found = {"kl": [control.value]}
    for kl in (1.0, 0.0):  # as verl/trainer/ppo/ray_trainer.py does with the completions of a step
        steps = config.data.train_batch_size * config.actor_rollout_ref.rollout.n
        control.update(current_kl=kl, n_steps=steps)
        found["kl"].append(control.value)
    learners = {name: learner(config, name) for name in ("actor", "ref")}
    for name, made in ({"critic": critic(config)} | learners).items():
        found[name] = {
            part: dataclasses.asdict(getattr(made, f"{part}_config"))
            for part in ("engine", "optimizer")
        }
        found[name]["checkpointing"] = made.model_config.enable_gradient_checkpointing
    print("HANDED", json.dumps(found, default=str))
"""

LAID = {"engine": "vllm", "ranks": 8, "algorithm": "ppo", "kl_coefficient": 0.01}
RUNS = {
    "tokens": Training(
        algorithm="ppo", kl_coefficient=0.01, scale=ScaleSettings(micro_batch_tokens=2048)
    ),
    "defaults": Training(algorithm="ppo", kl_coefficient=0.01),
    "answers": Training(
        algorithm="ppo", kl_coefficient=0.01, scale=ScaleSettings(accumulation=2, updates=2)
    ),
    "laid out": Training(
        **LAID,
        scale=ScaleSettings(
            shards=4,
            reshard=False,
            sequence_parallel=2,
            offload="idle",
            activation_checkpointing=False,
        ),
    ),
    "offloaded": Training(**LAID, scale=ScaleSettings(offload="always", precision="fp32")),
    "paced": Training(
        algorithm="ppo", kl_coefficient=0.01, schedule="cosine", warm_up_steps=3, gradient_clip=0.5
    ),
}
STEERED = {"algorithm": "ppo", "kl_coefficient": 0.01, "kl_in": "reward", "kl_target": 0.02}
RUNS |= {
    f"{problems} x {group}": Training(problems_per_step=problems, group_size=group, **STEERED)
    for problems, group in ((32, 8), (4, 2), (32, 16))
}
LEARNERS = ("actor", "critic", "ref")


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return run name -> learner -> config."""
    folder = tmp_path_factory.mktemp("handed")
    make(TinyModel(), ["def solve(x): return x"], folder / "model")
    lines = [lines_of(training, folder) for training in RUNS.values()]
    run = python("-c", HANDED, text=json.dumps(lines), env=environment(Training()))
    assert run.returncode == 0, run.stderr[-2000:]
    configs = [
        json.loads(line.removeprefix("HANDED "))
        for line in run.stdout.splitlines()
        if line.startswith("HANDED ")
    ]
    return dict(zip(RUNS, configs, strict=True))


@pytest.mark.parametrize("run", ["tokens", "defaults", "laid out"])
def test_every_learner_gets_the_same_token_budget_per_pass(
    handed: dict[str, Any], run: str
) -> None:
    t = RUNS[run]
    budget = token_budget(t.scale, t.prompt_tokens + t.response_tokens)
    for name in LEARNERS:
        engine = handed[run][name]["engine"]
        assert engine["use_dynamic_bsz"] is True, name
        assert engine["infer_max_token_len_per_gpu"] == budget, name
        assert name == "ref" or engine["max_token_len_per_gpu"] == budget, name


def test_accumulation_sets_the_micro_batch_of_every_learner(handed: dict[str, Any]) -> None:
    for name in LEARNERS:
        engine = handed["answers"][name]["engine"]
        assert engine["use_dynamic_bsz"] is False, name
        assert engine["infer_micro_batch_size_per_gpu"] == 32 * 8 // 2 // 2, name
        assert name == "ref" or engine["micro_batch_size_per_gpu"] == 32 * 8 // 2 // 2, name


@pytest.mark.parametrize("run", RUNS)
def test_all_learners_have_the_same_layout(handed: dict[str, Any], run: str) -> None:
    alike = (
        "strategy",
        "fsdp_size",
        "reshard_after_forward",
        "ulysses_sequence_parallel_size",
        "mixed_precision",
        "model_dtype",
        "use_torch_compile",
    )
    offloaded = (
        "param_offload",
        "optimizer_offload",
        "offload_policy",
    )  # verl always offloads a reference
    actor = handed[run]["actor"]
    for name in ("critic", "ref"):
        other = handed[run][name]
        assert {key: other["engine"][key] for key in alike} == {
            key: actor["engine"][key] for key in alike
        }, name
        assert name == "ref" or {key: other["engine"][key] for key in offloaded} == {
            key: actor["engine"][key] for key in offloaded
        }
        assert other["checkpointing"] == actor["checkpointing"]


def test_scale_reaches_the_engine(handed: dict[str, Any]) -> None:
    engine = handed["laid out"]["actor"]["engine"]
    assert (
        engine["fsdp_size"],
        engine["reshard_after_forward"],
        engine["ulysses_sequence_parallel_size"],
    ) == (4, False, 2)
    assert engine["param_offload"]
    assert engine["optimizer_offload"]
    assert not engine["offload_policy"]
    assert handed["offloaded"]["actor"]["engine"]["offload_policy"]
    assert not handed["offloaded"]["actor"]["engine"]["param_offload"]
    assert handed["laid out"]["actor"]["engine"]["mixed_precision"]["param_dtype"] == "bf16"
    assert handed["offloaded"]["actor"]["engine"]["mixed_precision"]["param_dtype"] == "fp32"


@pytest.mark.parametrize("run", ["paced", "defaults"])
def test_the_critic_uses_the_policy_schedule_and_gradient_clip(
    handed: dict[str, Any], run: str
) -> None:
    t = RUNS[run]
    for name, times in {"actor": 1, "critic": 3}.items():
        optimizer = handed[run][name]["optimizer"]
        assert optimizer["lr"] == pytest.approx(times * t.learning_rate)
        assert (
            optimizer["lr_scheduler_type"],
            optimizer["lr_warmup_steps"],
            optimizer["clip_grad"],
        ) == (
            t.schedule,
            t.warm_up_steps,
            t.gradient_clip,
        )


@pytest.mark.parametrize("run", ["32 x 8", "4 x 2", "32 x 16"])
def test_the_kl_gain_does_not_depend_on_the_batch_size(handed: dict[str, Any], run: str) -> None:
    """e = 0.2, then -0.2, and K = 0.1 (arXiv:1909.08593, section 2.2)."""
    assert handed[run]["kl"] == pytest.approx(
        [0.01, 0.01 * (1 + 0.1 * 0.2), 0.01 * (1 + 0.1 * 0.2) * (1 - 0.1 * 0.2)]
    )


def test_a_kl_without_a_target_keeps_its_coefficient(handed: dict[str, Any]) -> None:
    assert len(set(handed["tokens"]["kl"])) == 1
