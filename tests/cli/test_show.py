"""`ratchet train --show` prints an algorithm's paper and verl overrides, and starts nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from cli import main as cli
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
