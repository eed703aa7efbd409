"""`ratchet failures` and `ratchet quality` read the scorecards of a home."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from artifacts.manifest import Manifest
from cli.failures import show_failures
from cli.quality import show_quality
from evaluation.scorecard import ScoredSample
from resources.home import NotReady
from resources.settings import Settings
from tests.evaluation.scorecards import scorecard
from tests.pipelines.home_builder import HomeBuilder

SAMPLES = (
    ScoredSample(
        task_id="t/0",
        completion="```python\nx = 1\n```",
        program="x = 1\n",
        verdict="AC",
        passed=2,
        total=2,
    ),
    ScoredSample(
        task_id="t/1",
        completion="my answer",
        program="p",
        verdict="WA",
        passed=0,
        total=2,
        failed_test=1,
        first_failed="assert f(1) == [2]",
    ),
    ScoredSample(
        task_id="t/2",
        completion="another",
        program="p",
        verdict="WA",
        passed=1,
        total=2,
        failed_test=2,
    ),
    ScoredSample(
        task_id="t/3",
        completion="[bold]third[/]",
        program="p",
        verdict="RE",
        total=2,
        failed_test=1,
        raised="KeyError",
        cut=False,
    ),
)


@pytest.fixture
def shown(home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> HomeBuilder:
    monkeypatch.setenv("RATCHET_HOME", str(home_builder.run_context.home.path))
    card = scorecard(
        "me",
        SAMPLES,
        prompts={"t/1": "Write f."},
        measured={
            "tokens": 50.0,
            "generation_s": 2.0,
            "quality_style": 0.75,
            "quality_answers": 1.0,
        },
    )
    with home_builder.run_context.store.draft("scores", "me--heldout") as folder:
        card.write(folder / "scorecard.json")
        home_builder.run_context.store.publish(
            folder,
            Manifest(kind="scores", name="me--heldout", key="k", content_hash=card.content_hash),
        )
    return home_builder


def output_of(score: str, kind: str = "", task: str = "", count: int = 5) -> tuple[int, str]:
    out = io.StringIO()
    return show_failures(
        score, kind, task, count, Settings.read("small"), Console(file=out, width=160)
    ), out.getvalue()


def test_failures_are_counted_by_kind(shown: HomeBuilder) -> None:
    code, text = output_of("me--heldout")
    assert code == 0
    assert "3 of 4" in text
    assert "test 1: 1, test 2: 1" in text
    assert "KeyError: 1" in text


def test_a_failure_is_shown_with_prompt_completion_and_visible_test(shown: HomeBuilder) -> None:
    code, text = output_of("me--heldout", task="1")
    assert code == 0
    assert "Write f." in text
    assert "my answer" in text
    assert "assert f(1) == [2]" in text
    assert "another" not in text
    _, hidden = output_of("me--heldout", kind="wa", task="t/2")
    assert re.search("test 2.*hidden", hidden)
    _, raw = output_of("me--heldout", kind="RE KeyError")
    assert "[bold]third[/]" in raw  # not interpreted as markup
    assert output_of("me--heldout", kind="TLE")[0] == 1


def test_a_scorecard_file_is_accepted_and_a_missing_score_named(
    shown: HomeBuilder, tmp_path: Path
) -> None:
    artifact = shown.run_context.store.require("scores", "me--heldout")
    assert (
        output_of(str(artifact.path / "scorecard.json"), kind="WA", count=1)[1].count(
            "First failing test"
        )
        == 1
    )
    with pytest.raises(NotReady, match=r"no score 'other'.*me--heldout"):
        output_of("other")


def test_quality_shows_a_line_per_score(shown: HomeBuilder) -> None:
    out = io.StringIO()
    assert show_quality([], "", Settings.read("small"), Console(file=out, width=200)) == 0
    assert "0.750" in out.getvalue()
    assert "50 tokens, 2 s" in out.getvalue()
    with pytest.raises(NotReady, match=r"'humaneval'.*heldout"):
        show_quality([], "humaneval", Settings.read("small"), Console(file=out))
