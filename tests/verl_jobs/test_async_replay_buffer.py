"""With an asynchronous trainer, groups of old weights are dropped and replaced, as verl does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.children import python
from tests.verl_jobs.test_job import a_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# TransferQueue and both buffers are real. Step 10 finds four groups of step 1 and four of step 8;
# the trainer's part, to dispatch new problems, finishes them at once.
SAMPLE = """
import json, os, sys
from pathlib import Path
from typing import Any
import ray
ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)
import torch
import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl_jobs.trainer.replay_buffer import WatchedAsyncReplayBuffer, WatchedReplayBuffer

folder = Path(sys.argv[1])
os.environ["VERL_FILE_LOGGER_PATH"] = str(folder / "metrics-001.jsonl")
tq.init()

def put(prompts, step):
    tags = [{"is_prompt": True, "status": "finished", "global_steps": step}] * len(prompts)
    keys = [f"{prompt}_{session}_0" for prompt in prompts for session in (0, 1)]
    info = {"acc": 1.0, "score": 1.0, "tests_passed": 1.0, "visible": 1.0, "hidden": 1.0,
            "denied": 0.0, "shared": 0.0, "unpaid": "", "trace": "{}", "verdict": "AC",
            "answer": "x", "format": 0.0}
    rows = [{"rm_scores": torch.tensor([0.0, 1.0]), "responses": torch.tensor([1, 2]),
             "extra_fields": {"reward_extra_info": info, "stop_reason": "completed"},
             "extra_info": {"problem_id": key}} for key in keys]
    tq.kv_batch_put(keys=keys, partition_id="train", fields=list_of_dict_to_tensordict(rows),
                    tags=[{"status": "success", "global_steps": step}] * len(keys))
    tq.kv_batch_put(keys=prompts, partition_id="train", tags=tags)

class Trainer:
    def __init__(self): self.dispatched = 0
    def refill(self, count):
        put([f"new{self.dispatched + at}" for at in range(count)], 10)
        self.dispatched += count

for buffer_class, own in ((ReplayBufferAsync, {}), (WatchedAsyncReplayBuffer, {"answers": 2}),
                          (WatchedReplayBuffer, {"answers": 2})):
    put([f"old{at}" for at in range(4)], 1)
    put([f"fresh{at}" for at in range(4)], 8)
    put(["trained0"], 9)  # as in a save: the prompt is gone
    tq.kv_clear(keys=["trained0"], partition_id="train")
    trainer = Trainer()
    buffer = buffer_class("separate_async", {}, max_off_policy_threshold=8,
        max_off_policy_strategy="drop", sampler_kwargs=own, refill_fn=trainer.refill)
    batch, metrics = buffer.sample(global_steps=10, partition_id="train", batch_size=6)
    print("GAVE", json.dumps({
        "prompts": sorted({key.rsplit("_", 2)[0].rstrip("0123456789") for key in batch.keys}),
        "evicted": int(metrics.get("training/off_policy/evicted_samples", 0)),
        "dispatched": trainer.dispatched,
        "ages": [metrics.get(f"watch/staleness_{name}") for name in ("mean", "max")],
        "left": [key for key in tq.kv_list(partition_id="train")["train"] if "trained" in key],
    }), flush=True)
    left = tq.kv_list(partition_id="train").get("train", {})
    tq.kv_clear(keys=list(left), partition_id="train")
ray.shutdown()
"""


@pytest.fixture(scope="module")
def gave(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what verl's asynchronous buffer, ours, and ours for synchronous trainers give."""
    folder = tmp_path_factory.mktemp("job")
    a_job(folder).write()
    settings = {
        "TQ_NUM_THREADS": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "TRANSFER_QUEUE_ENABLE": "1",
    }
    done = python("-c", SAMPLE, str(folder), env=settings)
    lines = [line for line in done.stdout.splitlines() if line.startswith("GAVE ")]
    assert len(lines) == 3, done.stdout[-2000:] + done.stderr[-3000:]
    rows = [json.loads(line.removeprefix("GAVE ")) for line in lines]
    return dict(zip(("verl", "ours", "synchronous"), rows, strict=True))


def test_old_groups_are_dropped_and_replaced_as_by_verl(
    gave: dict[str, dict[str, Any]],
) -> None:
    for name in ("prompts", "evicted", "dispatched"):
        assert gave["ours"][name] == gave["verl"][name]
    assert gave["ours"]["evicted"] == gave["ours"]["dispatched"] == 4
    assert gave["ours"]["prompts"] == ["fresh", "new"]


def test_completions_that_a_save_holds_without_their_prompt_are_removed(
    gave: dict[str, dict[str, Any]],
) -> None:
    assert gave["ours"]["left"] == []
    assert len(gave["verl"]["left"]) == 2


def test_the_buffer_of_synchronous_trainers_would_train_on_them(
    gave: dict[str, dict[str, Any]],
) -> None:
    assert gave["synchronous"]["evicted"] == 0
    assert "old" in str(gave["synchronous"]["prompts"])


def test_the_metrics_name_the_age_of_the_batch(gave: dict[str, dict[str, Any]]) -> None:
    mean, largest = gave["ours"]["ages"]
    assert mean == pytest.approx((4 * 2 + 2 * 0) / 6)
    assert largest == 2.0
    assert gave["verl"]["ages"] == [None, None]
