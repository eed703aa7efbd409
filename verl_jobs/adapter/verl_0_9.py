"""verl 0.9: hooks into its replay buffers, agent loops, engines and queue.

Every private name of verl that Ratchet uses is in this file. Each hook says what it changes.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import ray
from transfer_queue import interface
from verl.trainer.ppo.v1 import replay_buffer as verl_buffers

from verl_jobs.adapter.verl_0_9_patches import ENTROPY_WEIGHT


def job_namespace(namespace: str) -> str:
    """Return the namespace of the current Ray job.

    Evaluated at each use: a worker may have been started before it had a job.
    """
    return f"{namespace}-{ray.get_runtime_context().get_job_id()}"


class _Ray:
    """Proxy of the module `ray` for transfer_queue/interface.py: looks up actors in the job's
    namespace.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(ray, name)

    def get_actor(self, name: str, namespace: str) -> Any:
        return ray.get_actor(name, namespace=job_namespace(namespace))


class _Controller:
    """Proxy of the controller's class; creates the actor in the job's namespace."""

    def __init__(self, controller: Any) -> None:
        self.controller = controller

    def options(self, *, namespace: str, **options: Any) -> Any:
        return self.controller.options(namespace=job_namespace(namespace), **options)


def separate_queues() -> None:
    """Give each training a TransferQueue of its own.

    verl keeps a step's prompts and completions in TransferQueue, which finds its controller by one
    name per Ray cluster. Two trainings on one Ray (trials of a search, homes that share a cluster)
    would see each other's prompts, and the first to finish would close the other's queue.
    """
    interface.ray = _Ray()
    interface.TransferQueueController = _Controller(interface.TransferQueueController)


class _Hooked:
    """verl's replay buffer with hooks. Each default does what verl does."""

    def may_drop(self) -> bool:
        """Whether dynamic sampling may drop more groups."""
        return True

    def on_dropped(self, groups: int) -> None:
        """Dynamic sampling has dropped groups."""

    def before_clear(self, partition_id: str, keys: list[str]) -> None:
        """These completions are about to be removed without being trained on."""

    def in_order(self, prompts: set[str]) -> Sequence[str]:
        """Return the prompts in the order in which equally old ones are taken."""
        return list(prompts)

    def on_selected(self, versions: list[int]) -> None:
        """A batch has been chosen; versions: step at which each prompt was dispatched."""

    def arranged(self, batch: Any) -> Any:
        """Return the batch with its rows in another order."""
        return batch

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float]]:
        if not self.may_drop():
            return set(), Counter()
        filtered: tuple[set[str], Counter[float]] = super()._dapo_filtered_keys(partition_id)  # type: ignore[misc]
        return filtered

    def _evict_terminal_groups(self, *args: Any) -> Any:
        evicted = super()._evict_terminal_groups(*args)  # type: ignore[misc]
        self.on_dropped(evicted[2])
        return evicted

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        partition = self.partitions[partition_id]  # type: ignore[attr-defined]
        self.before_clear(partition_id, [key for key in partition if key.split("_")[0] in uids])
        super()._clear_groups(partition_id, uids)  # type: ignore[misc]

    def _select_prompt_uids(self, partition_id: str, prompts: set[str], size: int) -> Any:
        chosen = super()._select_prompt_uids(partition_id, self.in_order(prompts), size)  # type: ignore[misc]
        uids, _, versions = chosen
        self.on_selected([versions[uid] for uid in uids if uid in versions])
        return chosen

    def _materialize_batch(self, *args: Any, **kwargs: Any) -> Any:
        return self.arranged(super()._materialize_batch(*args, **kwargs))  # type: ignore[misc]


class ReplayBuffer(_Hooked, verl_buffers.ReplayBuffer):  # type: ignore[misc]  # verl has no types
    """For trainers whose completions are all sampled with the newest weights."""


class ReplayBufferAsync(_Hooked, verl_buffers.ReplayBufferAsync):  # type: ignore[misc]
    """For trainers that sample while they train."""


def number_prompts() -> None:
    """Name prompts by numbers that sort in dispatch order, instead of by uuid4.

    Equal seeds then give equal batches. The numbers begin with the time: a save of an asynchronous
    trainer holds prompts of the attempt before, whose numbers must differ.
    """
    from verl.trainer.ppo.v1 import trainer_base

    ids = itertools.count(time.time_ns() // 1000)
    trainer_base.uuid = SimpleNamespace(uuid4=lambda: f"{next(ids):020d}")


def agent_worker() -> type:
    """Return verl's worker of agent loops, with hooks, as a class that can be subclassed.

    Ray does not allow subclasses of an actor class.
    """
    from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ, apply_greedy_sampling_params

    base: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class

    class Worker(base):  # type: ignore[misc]
        def sampling_at(self, step: int) -> dict[str, Any]:
            """Return the sampling parameters that a training step changes."""
            return {}

        def is_greedy(self, session: int) -> bool:
            """Whether this session of a training prompt is greedy."""
            return False

        def further_sessions(self) -> int:
            """Return the number of sessions of a training prompt beyond rollout.n."""
            return 0

        async def _run_prompt(
            self, prompt: Any, sampling_params: Any, trajectory: Any, trace: bool = False
        ) -> None:
            if not trajectory["validate"]:
                sampling_params = sampling_params | self.sampling_at(int(prompt["global_steps"]))
                if more := self.further_sessions():
                    sessions = self.config.actor_rollout_ref.rollout.n
                    prompt["__rollout_n__"] = more + int(prompt.get("__rollout_n__", sessions))
            await super()._run_prompt(prompt, sampling_params, trajectory, trace)

        async def _run_agent_loop(
            self, sampling_params: Any, trajectory: Any, *, session_id: int, **kwargs: Any
        ) -> Any:
            if not trajectory["validate"] and self.is_greedy(session_id):
                sampling_params = dict(sampling_params)
                apply_greedy_sampling_params(sampling_params)
            return await super()._run_agent_loop(
                sampling_params, trajectory, session_id=session_id, **kwargs
            )

    return Worker


def around_build(
    before: Callable[[Any], None] | None = None, after: Callable[[Any, Any], None] | None = None
) -> None:
    """Call functions before and after the FSDP engine builds its model.

    before: gets the engine; after: gets the engine and the module, not yet sharded.
    """
    from verl.workers.engine.fsdp import transformer_impl

    build = transformer_impl.FSDPEngine._build_module

    def built(self: Any) -> Any:
        if before:
            before(self)
        module = build(self)
        if after:
            after(self, module)
        return module

    transformer_impl.FSDPEngine._build_module = built


def weigh_entropy(weight: Callable[[float, dict[str, float]], float]) -> None:
    """Choose the weight of the entropy in the loss of each update; verl's is constant.

    weight: gets the entropy of the step's batch in nats a token, and the step's metrics. Called in
    the trainer's process; `take_entropy_weight` in the workers'.
    """
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    update = PPOTrainer._update_actor

    def _update_actor(self: Any, batch: Any, metrics: dict[str, float]) -> Any:
        batch.extra_info[ENTROPY_WEIGHT] = weight(metrics["actor/entropy"], metrics)
        return update(self, batch, metrics)

    PPOTrainer._update_actor = _update_actor


def register_rollout(name: str, rollout: str, replica: Callable[[], type]) -> None:
    """Register an engine. rollout: dotted name of its class; replica: returns the replica's class.

    verl registers replicas by a public method, and rollouts in a private table.
    """
    from verl.workers.rollout import base
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    base._ROLLOUT_REGISTRY[(name, "async")] = rollout
    RolloutReplicaRegistry.register(name, replica)


def wrap_registries(wrap: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Replace the registries of policy losses and advantage estimators."""
    from verl.trainer.ppo import core_algos

    core_algos.POLICY_LOSS_REGISTRY = wrap(core_algos.POLICY_LOSS_REGISTRY)
    core_algos.ADV_ESTIMATOR_REGISTRY = wrap(core_algos.ADV_ESTIMATOR_REGISTRY)
