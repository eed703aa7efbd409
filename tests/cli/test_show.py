"""`ratchet train --show` prints an algorithm's paper and verl overrides, and starts nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from cli import main as cli
from cli.reward import TEMPLATES
from verl_jobs.config.algorithms import ALGORITHMS, NAMES, Name


@pytest.mark.parametrize("name", NAMES)
def test_train_show_prints_paper_and_overrides_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: Name
) -> None:
    monkeypatch.setenv("RATCHET_SET", "")  # the command line sets it; restored after the test
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "argv", ["ratchet", "train", "--algorithm", name, "--show"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr().out
    papers = re.findall(r"arXiv:\d{4}\.\d{5}", ALGORITHMS[name].paper)
    assert ended.value.code == 0
    assert papers
    assert all(paper in output for paper in papers)
    assert set(ALGORITHMS[name].overrides) <= {line.strip() for line in output.splitlines()}
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ("reward.by.mbpp.style=0.3", "Reward of mbpp correctness 0.9, format 0.1, style 0.3"),
        ("reward.by.mbpp.stile=0.3", "did you mean style"),
        ("reward.by.mbpp.correctness=0", "by.mbpp.correctness is 0"),
        ("reward.file=FOLDER/math.py", 'TASK must be "code"'),
        ("reward.file=FOLDER/qa.py", 'TASK must be "code"'),
    ],
)
def test_train_show_prints_the_reward_or_refuses_it(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    changes: str,
    shown: str,
) -> None:
    for kind in ("math", "qa"):
        (tmp_path / f"{kind}.py").write_text((TEMPLATES / f"{kind}.txt").read_text())
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    change = changes.replace("FOLDER", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["ratchet", "train", "--show", "--set", change])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr()
    assert shown in output.out + output.err
    assert ended.value.code == (0 if shown in output.out else 2)
