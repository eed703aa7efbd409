"""What Ratchet relies on in verl exists there, and is touched nowhere else.

Reads source files, and imports nothing of verl. RATCHET_VERL names the `verl` folder of another
version, to see what an adapter for it has to change. Trainings test the behaviour of the installed
one: rewards, batches, buffers, saves, resume, agent loops, validation (tests/journeys/).
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from pathlib import Path

import pytest
import yaml

from tests.test_architecture import ROOT
from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.adapter import versions
from verl_jobs.config.scale import Scale
from verl_jobs.config.training import Training

SPEC = importlib.util.find_spec("verl")
assert SPEC
assert SPEC.origin
VERL = Path(os.environ.get("RATCHET_VERL", Path(SPEC.origin).parent))
OURS = sorted((ROOT / "verl_jobs").rglob("*.py"))
ADAPTER = ROOT / "verl_jobs" / "adapter"

V1 = "trainer/ppo/v1"
# file:function of verl -> the parameters that ours has or passes
RELIES = {
    "reward": {
        "experimental/reward_loop/reward_manager/base.py:RewardManagerBase.__init__": (
            "config", "tokenizer", "compute_score",
        ),
        "experimental/reward_loop/reward_manager/base.py:RewardManagerBase.run_single": ("data",),
        "trainer/ppo/reward.py:load_reward_manager": ("config", "tokenizer"),
    },
    "batch": {
        "utils/tensordict_utils.py:list_of_dict_to_tensordict": ("list_of_dicts",),
        f"{V1}/agent_loop_tq.py:AgentLoopWorkerTQ._agent_loop_postprocess": (),
        "experimental/agent_loop/agent_loop.py:AgentLoopOutput.as_dict": (),
        "utils/dataset/rl_dataset.py:RLHFDataset.__init__": ("data_files", "tokenizer", "config"),
    },
    "buffer": {
        f"{V1}/replay_buffer.py:ReplayBuffer.__init__": (
            "trainer_mode", "trainer_config", "max_off_policy_threshold",
            "max_off_policy_strategy", "sampler_kwargs", "poll_interval", "refill_fn",
            "filter_groups_metric", "train_batch_size", "gen_batch_size",
            "max_inflight_gen_batches",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer.sample": (
            "global_steps", "partition_id", "batch_size",
        ),
        f"{V1}/replay_buffer.py:ReplayBufferAsync.sample": (
            "global_steps", "partition_id", "batch_size",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer._dapo_filtered_keys": ("partition_id",),
        f"{V1}/replay_buffer.py:ReplayBuffer._evict_terminal_groups": (
            "global_steps", "partition_id", "eviction_reasons",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer._clear_groups": ("partition_id", "uids"),
        f"{V1}/replay_buffer.py:ReplayBuffer._select_prompt_uids": (
            "partition_id", "sampleable_keys", "batch_size",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer._materialize_batch": (
            "partition_id", "selected_prompt_uids", "partition_snapshot",
        ),
    },
    "saves": {
        "trainer/ppo/checkpoint_callback.py:CheckpointCallback.on_save": (
            "trainer", "global_step", "checkpoint_dir",
        ),
        f"{V1}/trainer_base.py:PPOTrainer._save_checkpoint": (),
        "workers/engine/fsdp/transformer_impl.py:FSDPEngine._build_module": (),
        "utils/checkpoint/fsdp_checkpoint_manager.py:FSDPCheckpointManager.save_checkpoint": (
            "local_path",
        ),
        "utils/fsdp_utils.py:fsdp_version": ("model",),
    },
    "agent loop": {
        f"{V1}/agent_loop_tq.py:AgentLoopWorkerTQ._run_prompt": (
            "prompt", "sampling_params", "trajectory", "trace",
        ),
        "experimental/agent_loop/agent_loop.py:AgentLoopWorker._run_agent_loop": (
            "sampling_params", "trajectory", "agent_name",
        ),
        f"{V1}/agent_loop_tq.py:apply_greedy_sampling_params": ("params",),
        "experimental/agent_loop/agent_loop.py:AgentLoopBase.run": ("sampling_params",),
    },
    "advantages": {
        "trainer/ppo/core_algos.py:register_adv_est": ("name_or_enum",),
        "trainer/ppo/core_algos.py:register_policy_loss": ("name",),
        "trainer/ppo/core_algos.py:compute_remax_outcome_advantage": (
            "token_level_rewards", "reward_baselines", "response_mask",
        ),
    },
    "entropy": {
        f"{V1}/trainer_base.py:PPOTrainer._update_actor": ("batch", "metrics"),
        "workers/utils/losses.py:ppo_loss": ("config", "model_output", "data", "dp_group"),
    },
    "CPU": {
        "utils/distributed.py:initialize_global_process_group_ray": (),
        "utils/distributed.py:initialize_global_process_group": (),
        "utils/model.py:load_valuehead_model": (
            "local_path", "torch_dtype", "model_config", "trust_remote_code",
        ),
        "workers/rollout/replica.py:RolloutReplicaRegistry.register": ("name", "loader"),
        "workers/rollout/replica.py:RolloutReplica.launch_servers": (),
        "workers/rollout/base.py:BaseRollout.update_weights": ("weights",),
        "plugin/platform/platform_manager.py:PlatformRegistry.register": ("platform",),
        "checkpoint_engine/base.py:CheckpointEngineRegistry.register": ("backend",),
        "checkpoint_engine/base.py:CheckpointEngine.build_topology": (
            "actor_wg_world_size", "rollout_world_size", "metadata",
        ),
        "checkpoint_engine/base.py:CheckpointEngine.send_weights": ("weights", "global_steps"),
        "checkpoint_engine/base.py:CheckpointEngine.receive_weights": ("global_steps",),
        "workers/rollout/utils.py:ensure_async_iterator": (),
    },
}  # fmt: skip
# names that the adapter replaces or reads, and texts on which its hooks depend
NAMES = {
    "utils/fsdp_utils.py": ["CPUOffloadPolicy"],
    "utils/checkpoint/checkpoint_manager.py": ["self.checkpoint_save_contents", "get_rng_state"],
    "trainer/config/config.py": ["async_save"],
    "workers/rollout/base.py": ["_ROLLOUT_REGISTRY"],
    "trainer/ppo/core_algos.py": ["POLICY_LOSS_REGISTRY", "ADV_ESTIMATOR_REGISTRY"],
    f"{V1}/trainer_base.py": ["uuid"],
    # the maximum length of a request (verl_jobs/trainer/greedy.py)
    "workers/rollout/vllm_rollout/vllm_async_server.py": ['"max_tokens" in sampling_params'],
    "workers/rollout/sglang_rollout/async_sglang_server.py": ['"max_tokens" in sampling_params'],
    "workers/rollout/llm_server.py": ['"max_tokens" in sampling_params'],
}
PRIVATE = re.compile(
    r"_dapo_filtered_keys|_update_actor|_evict_terminal_groups|_clear_groups|_select_prompt_uids|_run_prompt"
    r"|_materialize_batch|_build_module|_ROLLOUT_REGISTRY|__ray_metadata__|\b_run_agent_loop"
    r"|\b_local_tensor|\b_dtensor_spec"
)


def parameters(where: str) -> list[str] | None:
    """Return the parameters of `file:Class.function` in verl; None if it does not exist."""
    file, _, name = where.partition(":")
    if not (VERL / file).exists():
        return None
    node: ast.AST = ast.parse((VERL / file).read_text(encoding="utf-8"))
    for part in name.split("."):
        found = [each for each in getattr(node, "body", []) if getattr(each, "name", "") == part]
        if not found:
            return None
        node = found[-1]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef), where
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


@pytest.mark.parametrize("area", RELIES)
def test_what_we_rely_on_exists_with_its_parameters(area: str) -> None:
    missing = {
        where: wanted
        for where, wanted in RELIES[area].items()
        if (there := parameters(where)) is None or not set(wanted) <= set(there)
    }
    assert not missing, {where: parameters(where) for where in missing}


def test_names_that_the_adapter_replaces_exist() -> None:
    texts = {file: (VERL / file).read_text(encoding="utf-8") for file in NAMES}
    assert not [
        (file, name) for file, names in NAMES.items() for name in names if name not in texts[file]
    ]


def test_every_setting_of_our_overrides_is_one_of_verl_s() -> None:
    path = VERL / "trainer" / "config" / "_generated_ppo_trainer.yaml"
    schema = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = [
        Training(algorithm="ppo"),
        Training(engine="vllm", ranks=8, algorithm="ppo", dynamic_sampling=True),
        Training(engine="vllm", ranks=8, scale=Scale(placement="separate_async", engine_gpus=2)),
        Training(ranks=2, scale=Scale(placement="separate_async", engine_gpus=1)),
        Training(entropy_target=0.2),
    ]
    lines = [line for training in runs for line in lines_of(training)]
    names = {line.partition("=")[0] for line in lines if line[0] not in "+~"}
    assert not {name for name in names if not _in(schema, name)}


def _in(schema: object, name: str) -> bool:
    for part in name.split("."):
        if not isinstance(schema, dict) or part not in schema:
            return False
        schema = schema[part]
    return True


def test_private_names_of_verl_are_used_in_the_adapter_alone() -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in OURS
        if ADAPTER not in path.parents and PRIVATE.search(path.read_text(encoding="utf-8"))
    }
    assert users <= {"verl_jobs/cpu/batched.py"}  # its docstrings name what they follow


def test_no_module_of_verl_is_changed_outside_the_adapter() -> None:
    changed = []
    for path in OURS:
        if ADAPTER in path.parents:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {
            alias.asname or alias.name.split(".")[-1]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if re.match(r"verl\b|transfer_queue", getattr(node, "module", None) or alias.name)
        }
        for node in ast.walk(tree):
            changed += [
                f"{path.relative_to(ROOT)}:{target.lineno}"
                for target in (node.targets if isinstance(node, ast.Assign) else [])
                if isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id in modules
            ]
    assert not changed


def test_the_installed_verl_has_an_adapter() -> None:
    assert (ROOT / f"{versions.installed().replace('.', '/')}.py").is_file()


@pytest.mark.parametrize("version", ["0.8.0", "0.10.0.dev", "1.0"])
def test_a_version_without_an_adapter_is_refused_by_name(version: str) -> None:
    with pytest.raises(versions.UnsupportedVerl, match=rf"verl {version} .* supports 0\.9\.x"):
        versions.adapter_name(version)
