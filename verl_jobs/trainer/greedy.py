"""verl's agent loops, for any engine, with a temperature schedule and greedy completions.

Each training prompt gets one more completion, the greedy session 0 (verl_jobs/trainer/remax.py
explains why). On a CPU, verl_jobs/cpu/batched.py does the same.
"""

from __future__ import annotations

from typing import Any

import ray
from verl.trainer.ppo.v1.agent_loop_tq import (
    AgentLoopManagerTQ,
    AgentLoopWorkerTQ,
    apply_greedy_sampling_params,
)

from verl_jobs.trainer.remax import GREEDY
from verl_jobs.trainer.reward_manager import job_of

# Ray does not allow subclasses of an actor class
_Worker = AgentLoopWorkerTQ.__ray_metadata__.modified_class


class ScheduledWorker(_Worker):  # type: ignore[misc, valid-type]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.training = job_of(self.config).training

    async def _run_prompt(
        self,
        prompt: dict[str, Any],
        sampling_params: dict[str, Any],
        trajectory: dict[str, Any],
        trace: bool = False,
    ) -> None:
        if not trajectory["validate"]:
            sampling_params = sampling_params | {
                "temperature": self.training.temperature_at(int(prompt["global_steps"]))
            }
        await super()._run_prompt(prompt, sampling_params, trajectory, trace)


class GreedyFirstWorker(ScheduledWorker):
    async def _run_prompt(
        self,
        prompt: dict[str, Any],
        sampling_params: dict[str, Any],
        trajectory: dict[str, Any],
        trace: bool = False,
    ) -> None:
        if not trajectory["validate"]:
            prompt["__rollout_n__"] = 1 + int(
                prompt.get("__rollout_n__", self.config.actor_rollout_ref.rollout.n)
            )
        await super()._run_prompt(prompt, sampling_params, trajectory, trace)

    async def _run_agent_loop(
        self,
        sampling_params: dict[str, Any],
        trajectory: dict[str, Any],
        *,
        session_id: int,
        **kwargs: Any,
    ) -> Any:
        if session_id == GREEDY and not trajectory["validate"]:
            sampling_params = dict(sampling_params)
            apply_greedy_sampling_params(sampling_params)
        return await super()._run_agent_loop(
            sampling_params, trajectory, session_id=session_id, **kwargs
        )


class ScheduledManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ScheduledWorker)


class GreedyFirstManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(GreedyFirstWorker)
