"""`ratchet compare`: what it says of scorecards from files and from the store, and how it refuses what cannot be compared."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from artifacts.manifest import Manifest
from artifacts.store import Store
from cli.compare import compare
from cli.scorecards import NoScorecard
from evaluation.promotion.comparison import Incomparable
from evaluation.reports.compare_models import Contestant, versus
from evaluation.scorecard import Scorecard
from tests.evaluation.test_gate import BETTER, LUCKY, OLD, card
from tests.evaluation.test_policy import scorecard_of

Say = Callable[..., str]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))

    def run(
        *named: object,
        benchmarks: Sequence[str] = (),
        k: int = 1,
        suspects: Path | None = None,
        to: Path | None = None,
    ) -> str:
        told = io.StringIO()
        compare(
            [str(name) for name in named],
            benchmarks,
            k,
            0.05,
            suspects,
            to,
            None,
            Console(file=told, width=240),
        )
        return told.getvalue()

    return run


def written(folder: Path, made: Scorecard, name: str = "") -> Path:
    path = folder / f"{name or made.checkpoint}.json"
    made.write(path)
    return path


def stored(home: Path, made: Scorecard) -> None:
    store, name = Store(home), f"{made.checkpoint}--{made.benchmark}"
    with store.draft("scores", name) as folder:
        made.write(folder / "scorecard.json")
        store.publish(
            folder,
            Manifest(
                kind="scores", name=name, key=made.content_hash, content_hash=made.content_hash
            ),
        )


def test_three_models_are_compared_with_the_first_and_corrected_together(
    say: Say, tmp_path: Path
) -> None:
    to = tmp_path / "rows.json"
    text = say(*(written(tmp_path, made) for made in (OLD, BETTER, LUCKY)), to=to)
    rows = json.loads(to.read_text(encoding="utf-8"))
    assert [row["p_holm"] for row in rows] == pytest.approx([2 * rows[0]["p"], rows[1]["p"]])
    assert (
        "better is better" in text
        and "no difference shown" in text
        and "2 tests, corrected together (Holm)" in text
    )


def test_of_several_draws_the_one_that_both_answered_is_compared(say: Say, tmp_path: Path) -> None:
    for made in (
        OLD,
        card("old", [1] * 400, version="v2"),
        BETTER,
        card("better", [0] * 400, version="v3"),
    ):
        stored(tmp_path / "home", made)
    assert "25.0 → 37.5 %" in say("old", "better")


def test_draws_that_nobody_shares_are_refused(say: Say, tmp_path: Path) -> None:
    stored(tmp_path / "home", OLD)
    stored(tmp_path / "home", card("new", [1] * 400, version="v2"))
    with pytest.raises(
        Incomparable, match=r"different benchmark versions .*: evaluate both on the same one"
    ):
        say("old", "new")


@pytest.mark.slow
def test_runs_of_a_recipe_are_compared_over_seeds_and_tasks(say: Say, tmp_path: Path) -> None:
    runs = [
        written(tmp_path, card("run", [1] * (100 + i) + [0] * (300 - i)), f"old{i}")
        for i in range(3)
    ]
    better = [
        written(tmp_path, card("run", [1] * (200 + i) + [0] * (200 - i)), f"new{i}")
        for i in range(3)
    ]
    text = say(",".join(map(str, runs)), ",".join(map(str, better)))
    assert "(3 and 3 runs)" in text and "+25.0" in text
    with pytest.raises(Incomparable, match="at least two of each"):
        say(runs[0], ",".join(map(str, better)))


def test_one_model_alone_is_told_what_its_tasks_can_show(say: Say, tmp_path: Path) -> None:
    assert "a true gain of 6.3 points is shown four times in five" in say(written(tmp_path, OLD))


def test_pass_at_k_and_a_clean_score(say: Say, tmp_path: Path) -> None:
    suspects = tmp_path / "found.json"
    suspects.write_text(
        json.dumps({"heldout": [{"task": "t000", "problem_id": "x", "how": "tests"}]}),
        encoding="utf-8",
    )
    text = say(
        written(tmp_path, scorecard_of("old", [1] * 50)),
        written(tmp_path, scorecard_of("new", [5] * 50)),
        k=5,
        suspects=suspects,
    )
    assert "50.0 → 99.6 %" in text and "without the 1 tasks that resemble something" in text


def test_what_has_no_scores_is_named(say: Say, tmp_path: Path) -> None:
    stored(tmp_path / "home", OLD)
    with pytest.raises(
        NoScorecard,
        match=r"no scores of 'nobody': give a scorecard's file or folder, or one of old;",
    ):
        say("old", "nobody")
    with pytest.raises(NoScorecard, match="nobody here has a score on mbpp"):
        say("old", "old", benchmarks=["mbpp"])
    with pytest.raises(Incomparable, match="share no benchmark"):
        say("old", written(tmp_path, card("new", [1] * 9, "mbpp")))
    with pytest.raises(
        Incomparable, match=r"pass@5 needs 5 answers a task, t0 has 1: draw more or lower k"
    ):
        say("old", "old", k=5)


@pytest.mark.slow
def test_a_half_written_scorecard_is_one_line_on_stderr(tmp_path: Path) -> None:
    whole = written(tmp_path, OLD)
    half = tmp_path / "half.json"
    half.write_text(whole.read_text(encoding="utf-8")[:500], encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "cli.main", "compare", str(whole), str(half)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        run.returncode == 2
        and run.stderr.startswith(f"error: {half}: no whole scorecard")
        and run.stderr.count("\n") == 1
    )


@pytest.mark.slow
def test_null_contestants_are_told_apart_no_more_often_than_alpha() -> None:
    import numpy as np

    rng, false = np.random.default_rng(0), 0
    for _ in range(150):
        cards = [card(f"m{i}", (rng.random(80) < 0.4).tolist()) for i in range(4)]
        false += any(
            row.p_holm <= 0.05
            for row in versus([Contestant(c.checkpoint, {"heldout": (c,)}) for c in cards])
        )
    assert false / 150 <= 0.09
