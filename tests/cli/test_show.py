"""`ratchet train --show` prints an algorithm's paper and verl overrides, and starts nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from cli import main as cli
from cli.reward import TEMPLATES
from cli.train import show_algorithm
from problems.columns import ProblemError
from problems.embedded.compositional import generate
from problems.schema import write_parquet
from resources.home import Home
from resources.settings import Settings
from tests.cli.test_reviewer import quiet
from tests.pipelines.home_builder import HomeBuilder
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


def test_train_show_refuses_a_tag_once_all_problems_have_been_read(tmp_path: Path) -> None:
    builder = HomeBuilder(tmp_path)
    family = builder.run_context.profile.family
    settings = Settings(Home(tmp_path), "small", ("reward.by.operations-9.style=0.3",))
    show_algorithm(settings, quiet())  # nothing has been read: the run will tell
    with builder.run_context.store.draft("datasets", "raw_problems") as folder:
        write_parquet(generate(family)[:400], folder / "problems.parquet")
        manifest = Manifest(
            kind="datasets",
            name="raw_problems",
            key="k",
            content_hash="",
            config=family.model_dump(mode="json"),
        )
        builder.run_context.store.publish(folder, manifest)
    with pytest.raises(ProblemError, match=r"'operations-9', did you mean 'operations-"):
        show_algorithm(settings, quiet())
    other = settings.with_changes(["family.train=9"])  # the next run reads other problems
    show_algorithm(other, quiet())
