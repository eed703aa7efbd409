"""The reward functions for TRL, verl, verifiers and a loop of one's own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rewards.functions import RewardFunctions
from rewards.scorer import NoScore
from sandbox.sandbox import SandboxConfig

ABSOLUTE = {
    "problem_id": "absolute",
    "statement": "Return the absolute value.",
    "style": "call",
    "entry_point": "f",
    "tests": [{"args": [-2], "expected": 2}, {"args": [3], "expected": 3}],
}
MISSING = ABSOLUTE | {"problem_id": "missing", "packages": ["no_such_package"]}
RIGHT, WRONG = "```python\ndef f(x):\n    return abs(x)\n```", "def f(x):\n    return x"
# Stops the process that the judge waits for, without which it cannot read a result.
STOPS_JUDGE = """
import posix, signal
def f(x):
    parent = posix.getppid()
    for pid in open(f"/proc/{parent}/task/{parent}/children").read().split():
        if int(pid) != posix.getpid():
            posix.kill(int(pid), signal.SIGSTOP)
    return abs(x)
"""
PRIME_CODE = f"""
from prime_code.utils import check_correctness
tests = {{"fn_name": "f", "inputs": ["-2"], "outputs": ["2"]}}
check_correctness(tests, {STOPS_JUDGE!r}, timeout=1)
"""
LIMIT_S = 2.0  # of check_correctness there, for everything


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (ABSOLUTE, MISSING)))
    return path


@pytest.fixture(scope="module")
def functions(file: Path) -> RewardFunctions:
    return RewardFunctions(file, sandbox=SandboxConfig(workers=1))


def test_scores_are_in_the_order_of_the_pairs(functions: RewardFunctions) -> None:
    right, wrong = functions.scores([("absolute", RIGHT), ("absolute", WRONG)])
    assert (right.value, right.solved, wrong.solved) == (1.0, True, False)


def test_trl_leaves_out_what_could_not_be_judged(functions: RewardFunctions) -> None:
    logged: dict[str, float] = {}
    messages = [[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG)]
    values = functions.trl(
        completions=messages,
        task_id=["absolute", "missing"],
        log_metric=logged.__setitem__,
        prompts=["", ""],
    )
    assert (values, logged) == ([1.0, None], {"mask_sample": 0.5})


def test_verifiers_awaits_a_number(functions: RewardFunctions) -> None:
    assert asyncio.run(functions.verifiers("absolute", RIGHT)) == 1.0


@pytest.mark.slow
def test_verl_loads_and_calls_the_function(file: Path, tmp_path: Path) -> None:
    from omegaconf import OmegaConf
    from verl.trainer.ppo.reward import get_custom_reward_fn

    own = tmp_path / "reward.py"
    own.write_text(
        "from rewards.functions import RewardFunctions\n"
        f"compute_score = RewardFunctions({str(file)!r}).verl\n"
    )
    config = {"reward": {"custom_reward_function": {"path": str(own), "name": "compute_score"}}}
    score = get_custom_reward_fn(OmegaConf.create(config))
    call = {"data_source": "mine", "extra_info": {}}
    assert score(solution_str=RIGHT, ground_truth="absolute", **call)["score"] == 1.0
    with pytest.raises(NoScore):
        score(solution_str=RIGHT, ground_truth="missing", **call)


@pytest.mark.slow
def test_a_completion_that_hangs_the_reward_of_verl_gets_a_score(
    functions: RewardFunctions, tmp_path: Path
) -> None:
    """Like verl#288: the judge of prime_code (verl 0.9.1) waits for ever, and training with it."""
    verl = importlib.util.find_spec("verl")
    assert verl
    assert verl.origin
    folder = Path(verl.origin).parent / "utils" / "reward_score"  # prime_code alone, without torch
    trainer = subprocess.Popen(
        [sys.executable, "-c", PRIME_CODE],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        while not any(each.status() == psutil.STATUS_STOPPED for each in running(trainer.pid)):
            assert trainer.poll() is None
            time.sleep(0.05)
        honest, hostile = functions.scores([("absolute", RIGHT), ("absolute", STOPS_JUDGE)])
        with pytest.raises(subprocess.TimeoutExpired):
            trainer.wait(2 * LIMIT_S)
    finally:
        os.killpg(trainer.pid, signal.SIGKILL)
        trainer.wait()
    assert honest.value == 1.0
    assert hostile.value is not None
    assert hostile.value < 1.0


def running(pid: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children() if each.is_running()]
