"""verl's agent loops, for any engine, with schedules of sampling and greedy completions.

The temperature and the maximum length of a completion are those of the step that a prompt is
sampled for. For ReMax each training prompt gets one more completion, the greedy session 0
(verl_jobs/trainer/remax.py explains why). On a CPU, verl_jobs/cpu/batched.py does the same.
"""

from __future__ import annotations

from typing import Any

import ray
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ

from verl_jobs.adapter.versions import adapter
from verl_jobs.trainer.remax import GREEDY
from verl_jobs.trainer.reward_manager import job_of

_Worker = adapter().agent_worker()


class ScheduledWorker(_Worker):  # type: ignore[misc, valid-type]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.training = job_of(self.config).training

    def sampling_at(self, step: int) -> dict[str, Any]:
        # without stages the engine's own limit holds, which counts a conversation's earlier turns
        limit = {"max_tokens": self.training.answer_tokens_at(step)}
        return {
            "temperature": self.training.temperature_at(step),
            **(limit if self.training.answer_stages else {}),
        }


class GreedyFirstWorker(ScheduledWorker):
    def further_sessions(self) -> int:
        return 1

    def is_greedy(self, session: int) -> bool:
        return session == GREEDY


class ScheduledManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ScheduledWorker)


class GreedyFirstManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(GreedyFirstWorker)
