"""`ratchet train` refuses bad input with one line on stderr, exit code 2, and no run started."""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.ray.private import TrainingFailed
from tests.cli.conftest import Called
from verl_jobs.planner.preflight import CannotTrain

GENEROUS = 'TASK = "code"\n\ndef reward(task, answer, report):\n    return 1.0\n'


def refused(ratchet: Called, home: Path, *arguments: str) -> str:
    """Return the error of `ratchet train`, which must refuse these arguments."""
    code, _, error = ratchet(home, "train", "--profile", "small", *arguments)
    assert code == 2, error
    assert error.startswith("error: "), error
    assert len(error.splitlines()) == 1, error
    assert not (home / "runs").exists()
    return error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--algorithm", "gropo"), "training.algorithm.*'gropo'.*grpo"),
        (("--set", "training.trace=[2,99]"), "training.trace.*99"),
        (("--set", "training.answer_tokens=5000"), "tiny_model.positions"),
        (("--set", "training.frozen=[model.layer.0.*]"), "tiny model"),
        (("--set", "warm_up.lora={modules: [q_pro]}"), "tiny model.*lora.modules.*q_pro"),
        (("--set", "base=/nowhere"), "base.*/nowhere"),
        (("--set", "base=Qwen/Qwen2.5-Coder-32B", "--set", "training.steps=1000"), "disk"),
        (("--set", "ray.address=localhost:8265"), "ray.address.*'localhost:8265'.*http://"),
        (("--set", "needs.memory_gib=100000"), "100000"),
        (("--set", "needs.disk_gib=10000000"), r"disk.*1e\+07"),
        (("--set", "ray.address=http://127.0.0.1:9"), "http://127.0.0.1:9.*ray.address"),
        (("--set", "training.engine=vllm"), r"GPUs.*nvidia-smi.*\b0\b"),
        (("--set", "reward.file=/nowhere/reward.py"), "/nowhere/reward.py"),
    ],
)
def test_a_bad_setting_is_reported_in_one_line(
    ratchet: Called,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=200 * 2**30))
    assert re.search(message, refused(ratchet, tmp_path / "home", *arguments))


@pytest.mark.parametrize(
    "error",
    [
        CannotTrain("rows.parquet, row 3: no ground_truth"),
        TrainingFailed("training study-a ended: see trainer.log"),
    ],
)
def test_a_failed_training_of_a_study_is_reported_in_one_line(
    ratchet: Called,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: Exception,
) -> None:
    def stopped(*_: object) -> int:
        raise error

    monkeypatch.setattr("experiments.seeds.train_seeds", stopped)
    assert str(error) in refused(ratchet, tmp_path / "home", "--seeds", "2")


@pytest.mark.slow
def test_a_reward_that_pays_for_hacks_is_refused(ratchet: Called, tmp_path: Path) -> None:
    own = tmp_path / "generous.py"
    own.write_text(GENEROUS)
    for _ in range(2):  # the second call reads the stored result
        error = refused(
            ratchet,
            tmp_path / "home",
            "--set",
            f"reward.file={own}",
            "--set",
            "needs.memory_gib=1",
        )
        assert "exploit battery" in error
        assert "ratchet reward verify" in error


@pytest.mark.slow
def test_an_untrainable_base_is_refused(ratchet: Called, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    assert "no config.json" in refused(
        ratchet, tmp_path / "home", "--set", f"base={tmp_path / 'base'}"
    )


def test_metrics_name_a_port_that_is_in_use(ratchet: Called, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, error = ratchet(tmp_path, "metrics", "--port", port)
    assert code == 2
    assert f"cannot bind port {port}" in error


def test_a_place_for_backups_that_cannot_be_made_is_named(ratchet: Called, tmp_path: Path) -> None:
    code, _, error = ratchet(tmp_path, "backup", "/proc/nowhere")
    assert code == 2
    assert "/proc/nowhere: No such file or directory: check" in error


def test_costs_without_prices_say_where_to_set_them(ratchet: Called, tmp_path: Path) -> None:
    code, output, _ = ratchet(tmp_path, "cost", "--profile", "small")
    assert code == 0
    assert "set `price_per_hour`" in output
