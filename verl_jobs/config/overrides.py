"""Translate a `Training` into Hydra overrides of `verl.trainer.main_ppo`.

Each override changes a default of verl.
"""

from __future__ import annotations

import json
from pathlib import Path

from verl_jobs.config.algorithms import MAX_DROPPED
from verl_jobs.config.engine_overrides import BATCHED, CPU, GPU, gpu_workers, installed_attention
from verl_jobs.config.learner_overrides import actor_overrides, critic_overrides, kl_overrides
from verl_jobs.config.scale_overrides import scale_overrides
from verl_jobs.config.training import Training
from verl_jobs.config.verl_schema import checked

PACKAGE = Path(__file__).resolve().parents[1]

MODEL_CONFIG = "+actor_rollout_ref.model.override_config"
TRACES = "trace"  # subfolder of the job's folder
# by `acc` as in DAPO's paper: by `reward`, an unsolved group would stay because its completions
# differ in length
FILTER_GROUPS = ("algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc")


def overrides(
    training: Training,
    *,
    seed: int,
    model: Path,
    train: Path,
    validation: Path,
    folder: Path,
    loggers: list[str],
    name: str,
) -> list[str]:
    """Return all overrides of one run, each key once.

    Where a key occurs twice, the later override wins.
    """
    t = training
    lines = [
        *_engine(t),
        *(_trace(t, folder / TRACES) if t.trace else []),
        *kl_overrides(t),
        *_data(t, seed, train, validation),
        *actor_overrides(t, seed, model),
        *(critic_overrides(t, model) if t.method.critic else []),
        *_rollout(t, seed),
        "reward.reward_manager.source=importlib",
        "reward.reward_manager.name=SandboxRewardManager",
        "reward.reward_manager.module.path=pkg://verl_jobs.trainer.reward_manager",
        *_trainer(t, folder, loggers, name),
        *_own(t),
    ]
    if t.plugins.unbatched:
        lines = [override for override in lines if override != BATCHED]
    lines += [checked(line, megatron=t.scale.megatron is not None) for line in t.verl]
    return list({override.split("=")[0].lstrip("+~"): override for override in lines}.values())


def _engine(t: Training) -> list[str]:
    """Return the overrides of the engine, and of the training's scale."""
    lengths = t.prompt_tokens + t.response_tokens
    return [
        *(
            CPU
            if t.engine == "hf"
            else [
                *GPU,
                *gpu_workers(t.scale.nodes),
                f"{MODEL_CONFIG}.attn_implementation={installed_attention()}",
                f"actor_rollout_ref.rollout.name={t.engine}",
            ]
        ),
        *scale_overrides(
            t.scale,
            t.engine,
            ranks=t.ranks,
            problems=t.problems_per_step,
            group=t.group_size,
            longest=lengths,
            critic=t.method.critic,
        ),
    ]


def _data(t: Training, seed: int, train: Path, validation: Path) -> list[str]:
    return [
        f"data.train_files='{train}'",
        f"data.val_files='{validation}'",
        f"data.seed={seed}",
        f"data.train_batch_size={t.problems_per_step}",
        f"data.max_prompt_length={t.prompt_tokens}",
        f"data.max_response_length={t.response_tokens}",
        "data.filter_overlong_prompts=True",
        *_curriculum(t),
    ]


def _rollout(t: Training, seed: int) -> list[str]:
    """Return the overrides of sampling: agent loops, group size, replay buffer, temperature."""
    rollout = "actor_rollout_ref.rollout"
    buffer = ",".join(f"{key}:{value}" for key, value in _sampler(t).items())
    return [
        *_agent_loops(t),
        *(_conversations(t) if t.agents.on else []),
        f"{rollout}.n={t.group_size}",
        f"+trainer.v1.sampler.sampler_kwargs={{{buffer}}}",
        f"{rollout}.temperature={t.temperature}",
        f"{rollout}.seed={seed}",
        f"{rollout}.calculate_log_probs=True",
        *t.validation.overrides,
        *(FILTER_GROUPS if t.drops_equal_groups else []),
    ]


def _trainer(t: Training, folder: Path, loggers: list[str], name: str) -> list[str]:
    return [
        f"trainer.logger=[{','.join(['file', *loggers])}]",
        "trainer.project_name=ratchet",
        f"trainer.experiment_name={name}",
        # the start policy's score; on a resumed run, the score of the checkpoint that it resumes
        # from
        "trainer.val_before_train=True",
        f"trainer.test_freq={t.save_every}",
        f"trainer.save_freq={t.save_every}",
        f"trainer.total_training_steps={t.steps}",
        "trainer.total_epochs=1000",
        "trainer.resume_mode=auto",
        # verl's retention deletes a checkpoint before the new one is complete; checkpoints.py
        # deletes after
        "trainer.max_actor_ckpt_to_keep=null",
        f"trainer.default_local_dir='{folder / 'saves'}'",
        "trainer.checkpoint_callback_class=verl_jobs.trainer.callback.AfterSave",
    ]


def _own(t: Training) -> list[str]:
    """Return the overrides of the user's plugins (verl_jobs/config/references.py).

    They follow the overrides that they replace.
    """
    plugins, lines = t.plugins, []
    if plugins.loss or plugins.advantage:
        lines.append(
            "actor_rollout_ref.model.external_lib="
            f"verl_jobs.plugins.{'own_and_frozen' if t.frozen else 'own_algorithms'}"
        )
    if plugins.loss:
        lines.append(f"actor_rollout_ref.actor.policy_loss.loss_mode='{plugins.loss}'")
    if plugins.advantage:
        lines.append(f"algorithm.adv_estimator='{plugins.advantage}'")
    if plugins.dataset:
        lines += [
            (
                "data.custom_cls.path="
                "pkg://verl_jobs."
                f"{'curriculum.curriculum_dataset' if t.selects_problems else 'config.references'}"
            ),
            f"data.custom_cls.name='{plugins.dataset}'",
        ]
    if plugins.reward_manager:
        lines += [
            "reward.reward_manager.module.path=pkg://verl_jobs.config.references",
            f"reward.reward_manager.name='{plugins.reward_manager}'",
        ]
    if plugins.agent_loop:
        lines.append(
            "actor_rollout_ref.rollout.agent.agent_loop_config_path="
            f"'{PACKAGE / 'plugins' / 'own_agent.yaml'}'"
        )
        lines.append("actor_rollout_ref.rollout.agent.default_agent_loop=own")
    return lines


def _sampler(t: Training) -> dict[str, object]:
    """Return the arguments of the replay buffer (verl_jobs/trainer/replay_buffer.py).

    verl passes `algorithm.filter_groups` only to its own buffer.
    """
    arguments: dict[str, object] = {
        "answers": t.group_size,
        "least": t.method.least,
    }
    if t.reward_normalised or t.reward_clip:
        arguments |= {"normalised": t.reward_normalised, "clip": t.reward_clip}
    if t.method.greedy:
        arguments["greedy"] = True
    if t.overlong_rule == "mask":
        arguments["masked"] = True
    if t.drops_equal_groups:
        arguments |= {
            "filter_groups_metric": "acc",
            "train_batch_size": t.problems_per_step,
            "gen_batch_size": 1,
            "max_inflight_gen_batches": 2,
        }
        arguments["most_dropped"] = MAX_DROPPED * t.problems_per_step
    return arguments


def _trace(t: Training, folder: Path) -> list[str]:
    """Enable torch's profiler on rank 0 of the policy and critic, and Ray's timeline at the end."""
    learners = ["actor_rollout_ref.actor", *(["critic"] if t.method.critic else [])]
    contents = "[cpu]" if t.engine == "hf" else "[cpu,cuda]"
    return [
        "global_profiler.tool=torch",
        f"global_profiler.steps={json.dumps(t.trace).replace(' ', '')}",
        f"global_profiler.save_path='{folder}'",
        *(f"{learner}.profiler.enable=True" for learner in learners),
        *(f"{learner}.profiler.tool_config.torch.contents={contents}" for learner in learners),
        f"ray_kwargs.timeline_json_file='{folder / 'timeline.json'}'",
    ]


def _curriculum(t: Training) -> list[str]:
    """Return the overrides of a dataset that selects problems by curriculum.

    It runs in the trainer's process, where the replay buffer reports observed pass rates to it.
    """
    if not t.selects_problems:
        return []
    plugin = {"sampler": f"'{t.plugins.sampler}'"} if t.plugins.sampler else {}
    settings = ",".join(
        f"{key}:{value}"
        for key, value in (t.curriculum.model_dump() | {"steps": t.steps} | plugin).items()
    )
    dataset = [
        "data.custom_cls.path=pkg://verl_jobs.curriculum.curriculum_dataset",
        "data.custom_cls.name=CurriculumDataset",
    ]
    return [*dataset, "data.dataloader_num_workers=0", f"+data.curriculum={{{settings}}}"]


def _agent_loops(t: Training) -> list[str]:
    """Return the agent-loop manager for greedy completions, or what changes with the step.

    On a CPU the batched loop does all of it itself.
    """
    if (t.engine == "hf" and not t.plugins.unbatched) or not (
        t.method.greedy or t.final_temperature or t.answer_stages
    ):
        return []
    manager = "GreedyFirstManager" if t.method.greedy else "ScheduledManager"
    return [
        (
            "+actor_rollout_ref.rollout.agent.agent_loop_manager_class="
            f"verl_jobs.trainer.greedy.{manager}"
        )
    ]


def _conversations(t: Training) -> list[str]:
    """Return the overrides of multi-turn conversations.

    On a CPU the batched loop runs them. Elsewhere verl's own workers do, one conversation each
    (verl_jobs/agents/loop.py).
    """
    if t.engine == "hf":
        return [
            (
                "+actor_rollout_ref.rollout.agent.agent_loop_manager_class="
                "verl_jobs.cpu.conversing.ConversingManager"
            )
        ]
    loops = PACKAGE / "agents" / "loops.yaml"
    return [
        "actor_rollout_ref.rollout.agent.default_agent_loop=conversation",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path='{loops}'",
    ]
