"""A failing judge: completions without a verdict are left out; with none left the step fails."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from problems.dataset.rl_parquet import ground_truth
from rewards.battery.cases import CODE, MEDIAN
from rewards.config import RewardConfig
from rewards.own import RewardFileError
from sandbox.protocol import Verdict
from sandbox.sandbox import SandboxConfig, SandboxError
from tests.verl_jobs.test_job import a_job
from verl_jobs import faults

pytestmark = pytest.mark.slow  # importing verl takes longer than all of this

RIGHT, WRONG = f"```python\n{CODE['call'].reference}```", f"```python\n{CODE['call'].wrong}```"
OWN = """
TASK = "code"
def reward(task, answer, report):
    if {raises}:
        raise KeyError("corner case")
    return 1.0 if report.verdict == "AC" else -1.0
"""


@pytest.fixture
def scorer() -> Any:
    from rewards.scorer import Scorer

    scorer = Scorer(RewardConfig(), SandboxConfig(workers=2))
    yield scorer
    scorer._sandbox.close()


def test_a_batch_ends_although_its_sandbox_processes_are_killed(scorer: Any) -> None:
    pairs, stop = (
        [(ground_truth(MEDIAN), text) for text in (RIGHT, WRONG) * 60],
        threading.Event(),
    )
    scorer.score(pairs[:2])

    def kill() -> None:
        for _ in range(3):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):  # already gone
                    process.kill()
            if stop.wait(0.3):
                return

    killer = threading.Thread(target=kill)
    killer.start()
    scores = scorer.score(pairs)
    stop.set()
    killer.join()
    scored = [score for score in scores if score.value is not None]
    assert len(scores) == len(pairs)
    assert len(scored) >= len(pairs) // 2
    assert all(
        (score.verdict is Verdict.AC) == (at % 2 == 0)
        for at, score in enumerate(scores)
        if score.value is not None
    )


def test_a_closed_sandbox_is_replaced(scorer: Any) -> None:
    pairs = [(ground_truth(MEDIAN), RIGHT)]
    first = scorer._sandbox
    first.close()
    assert [score.verdict for score in scorer.score(pairs)] == [Verdict.AC]
    assert scorer._sandbox is not first


def test_a_sandbox_that_cannot_start_fails_the_batch(
    scorer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sandbox import sandbox as module

    def nowhere(*_: object) -> object:
        raise SandboxError("no worker starts")

    monkeypatch.setattr(module, "backend_of", nowhere)  # a machine without free processes
    with pytest.raises(SandboxError):
        scorer.score([(ground_truth(MEDIAN), RIGHT)])
    monkeypatch.undo()
    assert scorer.score([(ground_truth(MEDIAN), RIGHT)])[0].solved


def own_scorer(folder: Path, raises: str) -> Any:
    from rewards.scorer import Scorer

    (folder / "reward.py").write_text(OWN.format(raises=raises))
    return Scorer(RewardConfig(file=str(folder / "reward.py")), SandboxConfig(workers=2))


def test_a_reward_file_that_raises_once_loses_only_that_completion(tmp_path: Path) -> None:
    scorer = own_scorer(tmp_path, "'sum(xs)' in answer")
    scores = scorer.score([(ground_truth(MEDIAN), text) for text in (RIGHT, WRONG, RIGHT)])
    assert [score.value for score in scores] == [1.0, None, 1.0]


def test_a_reward_file_that_always_raises_fails_the_batch(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="corner case"):
        own_scorer(tmp_path, "True").score(
            [(ground_truth(MEDIAN), text) for text in (RIGHT, WRONG)]
        )


def test_an_unreadable_reward_file_raises_reward_file_error(tmp_path: Path) -> None:
    with pytest.raises(RewardFileError):
        own_scorer(tmp_path, "True or (").score([(ground_truth(MEDIAN), RIGHT)])


# A batch loop without its config fails. TransferQueue, the loop and verl's buffer are real.
BATCH = """
import asyncio, json, os, sys
from pathlib import Path
import ray
ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)
import transfer_queue as tq
from verl_jobs.cpu.batched import BatchedAgentLoopWorker
from verl_jobs.cpu.replay_buffer import FastReplayBuffer
from verl_jobs.job import TrainingJob

folder = Path(sys.argv[1])
os.environ["VERL_FILE_LOGGER_PATH"] = str(folder / "metrics-001.jsonl")
tq.init()
loop = object.__new__(BatchedAgentLoopWorker)
loop.job = TrainingJob.read(folder / "job.json")
buffer = FastReplayBuffer(
    "sync",
    {},
    max_off_policy_threshold=None,
    max_off_policy_strategy="drop",
    sampler_kwargs={"answers": 2, "least": 2},
)
for partition in ("train", "val"):
    uids = [f"{partition}{at}" for at in range(2)]
    tag = {"is_prompt": True, "status": "pending", "global_steps": 1}
    tq.kv_batch_put(keys=uids, partition_id=partition, tags=[tag] * 2)
    asyncio.run(loop._run([{"uid": uid, "global_steps": 1} for uid in uids], partition == "val"))
    try:
        samples = buffer.sample(global_steps=1, partition_id=partition, batch_size=2)
        print(partition, "gave", samples)
    except RuntimeError as error:
        print(partition, "raises", error)
ray.shutdown()
"""


@pytest.mark.timeout(300)
def test_a_failed_batch_raises_in_training_and_in_validation(
    tmp_path: Path,
) -> None:
    a_job(tmp_path).write()
    settings = {
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",
        "TQ_NUM_THREADS": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    environment = (
        os.environ
        | settings
        | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "TRANSFER_QUEUE_ENABLE": "1"}
    )
    done = subprocess.run(
        [sys.executable, "-c", BATCH, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("train ", "val "))]
    assert len(lines) == 2, done.stdout + done.stderr
    assert lines[0].startswith("train raises")
    assert " 2 validation problems" in lines[1]
    assert "AttributeError" in lines[1]
    assert [" 2 prompts" in fault.what for fault in faults.read(tmp_path)] == [True, True]
