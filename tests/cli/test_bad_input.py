"""`ratchet train` with what cannot be meant: one line on stderr, exit code 2, and no run begun."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli import main as cli
from resources.ray.private import TrainingFailed
from verl_jobs.planner.preflight import CannotTrain

GENEROUS = 'TASK = "code"\n\ndef reward(task, answer, report):\n    return 1.0\n'


def refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path, *arguments: str
) -> str:
    """What `ratchet train` says of these arguments, which it must refuse."""
    for name in (
        "RATCHET_SET",
        "RATCHET_UNVERIFIED",
        "DAGSTER_HOME",
    ):  # the command line sets them: forgotten after this test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("RATCHET_HOME", str(home))
    monkeypatch.setattr(sys, "argv", ["ratchet", "train", "--profile", "small", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == 2 and told.startswith("error: ") and len(told.splitlines()) == 1, (
        told
    )
    assert not (home / "runs").exists()
    return told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--algorithm", "gropo"), "training.algorithm: no 'gropo', did you mean grpo"),
        (("--algorithm", "GRPO"), "training.algorithm: no 'GRPO', did you mean grpo"),
        (
            ("--algorithm", "gdpo"),
            "training.algorithm gdpo cannot be run: ",
        ),
        (("--set", "training.trace=[2,99]"), "training.trace: step 99 is after the last step"),
        (("--set", "training.answer_tokens=5000"), "tiny_model.positions is "),
        (("--set", "training.frozen=[model.layer.0.*]"), "the tiny model: "),
        (
            ("--set", "warm_up.lora={modules: [q_pro]}"),
            "the tiny model: lora.modules: the model has no layer q_pro",
        ),
        (
            ("--set", "base=/nowhere"),
            "base: no folder /nowhere: give a Hugging Face folder, or a hub id",
        ),
        (
            ("--set", "base=Qwen/Qwen2.5-Coder-32B", "--set", "training.steps=1000"),
            "of free disk, and",
        ),
        (
            ("--set", "ray.address=localhost:8265"),
            "ray.address: 'localhost:8265' is no address: write it as http://host:port",
        ),
        (
            ("--set", "training.learning_rat=1"),
            "training.learning_rat: no such key, did you mean 'learning_rate'",
        ),
        (
            ("--set", "training.ranks=3"),
            "training: 8 problems x 4 completions do not divide among 3 ranks: use a multiple\n",
        ),
        (("--set", "training.steps=9"), "a multiple of save_every (2), got 9"),
        (("--set", "training.steps"), "write section.key=value"),
        (("--set", "needs.memory_gib=100000"), "a run needs 100000"),
        (("--set", "needs.disk_gib=10000000"), "of disk left, a run needs 1e+07"),
        (
            ("--set", "ray.address=http://127.0.0.1:9"),
            "http://127.0.0.1:9 (profile key ray.address)",
        ),
        (("--set", "training.engine=vllm"), "needs as many GPUs, nvidia-smi lists 0"),
        (("--set", "reward.file=/nowhere/reward.py"), "/nowhere/reward.py"),
    ],
)
def test_one_line_says_what_is_wrong_and_how_to_mend_it(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=200 * 2**30))
    assert said in refused(capsys, monkeypatch, tmp_path / "home", *arguments)


@pytest.mark.parametrize(
    "error",
    [
        CannotTrain("rows.parquet, row 3: no ground_truth"),
        TrainingFailed("training study-a ended: see trainer.log"),
    ],
)
def test_what_stops_a_training_of_a_study_is_one_line_too(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: Exception,
) -> None:
    def stopped(*_: object) -> int:
        raise error

    monkeypatch.setattr("experiments.seeds.train_seeds", stopped)
    assert str(error) in refused(capsys, monkeypatch, tmp_path / "home", "--seeds", "2")


@pytest.mark.slow
def test_a_reward_that_pays_for_hacks_is_refused_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "generous.py"
    own.write_text(GENEROUS)
    for _ in range(2):  # tried once, known after
        told = refused(
            capsys,
            monkeypatch,
            tmp_path / "home",
            "--set",
            f"reward.file={own}",
            "--set",
            "needs.memory_gib=1",
        )
        assert (
            "has not passed the exploit battery (failed: " in told
            and "ratchet reward verify" in told
        )


@pytest.mark.slow
def test_a_base_that_cannot_be_trained_is_refused_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "base").mkdir()
    assert "no config.json" in refused(
        capsys, monkeypatch, tmp_path / "home", "--set", f"base={tmp_path / 'base'}"
    )
