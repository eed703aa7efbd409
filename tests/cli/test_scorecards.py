"""Other commands read scorecards of `ratchet evaluate --benchmark`: real tasks, real sandbox."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.compare import compare
from cli.evaluate.completions import EvaluationOptions, evaluate_completions
from cli.failures import show_failures
from cli.lookup.scorecards import NoScorecard
from cli.lookup.scored_benchmark import NotReproducible
from cli.quality import show_quality
from cli.reproduce import reproduce
from evaluation.preference.contestants import read_contestant
from evaluation.promotion.rate import Incomparable
from evaluation.scorecard import Scorecard
from problems.columns import ProblemError
from resources.home import NotReady
from resources.settings import Settings

DATA = Path(os.environ.get("RATCHET_DATA", Path(__file__).parents[3] / "shared" / "data"))
HUMANEVAL = DATA / "humaneval" / "HumanEval.jsonl.gz"
QUIET = Console(quiet=True)
needs_files = pytest.mark.skipif(not HUMANEVAL.exists(), reason=f"no benchmark files in {DATA}")


class SmallBenchmark:
    """The first tasks of HumanEval in a file, and scorecards of completions to them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "tasks.jsonl"
        with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as lines:
            self.rows = [json.loads(next(lines)) for _ in range(4)]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in self.rows))

    def score(self, name: str, correct: list[bool], **options: Any) -> Path:
        """Score canonical completions where `correct` is true, else wrong ones; return the path."""
        completions = [
            (row["task_id"], row["canonical_solution"] if ok else "    return None\n")
            for row, ok in zip(self.rows, correct, strict=False)
        ]
        file = self.folder / f"{name}.jsonl"
        file.write_text(
            "".join(
                json.dumps({"task_id": task, "completion": text}) + "\n"
                for task, text in completions
            )
        )
        out = self.folder / name / "verdicts.jsonl"
        evaluation = EvaluationOptions("humaneval", **{"data": self.file, "out": out, **options})
        assert evaluate_completions(file, evaluation, Settings.read().home.path, QUIET, QUIET) == 0
        return out.with_name("verdicts.scorecard.json")


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallBenchmark:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    return SmallBenchmark(tmp_path)


def compared(*named: Path, suspects: Path | None = None) -> str:
    output = io.StringIO()
    compare(
        [str(name) for name in named],
        [],
        k=1,
        alpha=0.05,
        suspects=suspects,
        to=None,
        settings=Settings.read(),
        console=Console(file=output, width=240),
    )
    return output.getvalue()


def reproduced(path: Path, out: Path | None = None, data: Path | None = None) -> tuple[int, str]:
    output = io.StringIO()
    return reproduce(
        str(path), out, Settings.read(), Console(file=output, width=240), data
    ), output.getvalue()


@pytest.mark.slow
@needs_files
def test_scorecards_are_compared_by_file_or_folder(benchmark: SmallBenchmark) -> None:
    one, two = (
        benchmark.score("one", [True, False, False, False]),
        benchmark.score("two", [True, True, True, False]),
    )
    for named in ((one, two), (one.parent, two.parent)):
        text = compared(*named)
        assert "25.0 → 75.0 %" in text
        assert " 2, 0 " in text
        assert "no difference shown" in text
    assert "solves 25.0 % (1 of 4" in compared(one)


@pytest.mark.slow
@needs_files
def test_different_versions_or_tasks_are_not_compared(benchmark: SmallBenchmark) -> None:
    one, fewer = (
        benchmark.score("one", [True] * 4),
        benchmark.score("fewer", [True] * 3, partial=True),
    )
    with pytest.raises(Incomparable, match=r"humaneval.*\b1 task.*HumanEval/3"):
        compared(one, fewer)
    changed = [row | {"test": row["test"] + "\n# another release"} for row in benchmark.rows]
    (other := benchmark.folder / "other.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in changed)
    )
    with pytest.raises(Incomparable, match=r"one and two.*benchmark versions"):
        compared(one, benchmark.score("two", [True] * 4, data=other))
    text = compared(fewer, benchmark.score("second", [True, False, True], partial=True))
    assert re.search("PARTIAL: .*1 task.*humaneval", text)


@needs_files
def test_ambiguous_folders_and_invalid_scorecards_are_refused(
    benchmark: SmallBenchmark,
) -> None:
    one, two = benchmark.score("one", [True] * 4), benchmark.score("two", [True] * 4)
    two.rename(one.with_name("two.scorecard.json"))
    files = r"humaneval.*two\.scorecard\.json.*verdicts\.scorecard\.json"
    with pytest.raises(NoScorecard, match=files):
        compared(one.parent, one)
    with pytest.raises(NoScorecard, match=r"verdicts\.jsonl"):
        compared(one, one.with_name("verdicts.jsonl"))


@pytest.mark.slow
@needs_files
def test_the_clean_score_excludes_suspect_tasks(benchmark: SmallBenchmark) -> None:
    one, two = (
        benchmark.score("one", [True, False, False, False]),
        benchmark.score("two", [True, True, False, False]),
    )
    suspects = benchmark.folder / "suspects.json"
    suspects.write_text(
        json.dumps({"humaneval": [{"task": "humaneval/0", "problem_id": "x/1", "how": "tests"}]})
    )
    assert "without the 1 task" in (text := compared(one, two, suspects=suspects))
    assert "0.0 % (0 of 3" in text
    scorecard = benchmark.score(
        "suspect", [True, False, False, False], suspects={"humaneval": ("humaneval/0",)}
    )
    figures = json.loads(scorecard.read_text())["figures"]
    assert figures["scores"]["base"]["pass@1"]["value"] == 0.25
    assert figures["clean"]["left_out"] == ["HumanEval/0"]
    assert figures["clean"]["scores"]["base"]["pass@1"]["value"] == 0.0


@pytest.mark.slow
@needs_files
def test_a_completion_with_a_lone_surrogate_is_stored_unchanged(benchmark: SmallBenchmark) -> None:
    benchmark.rows[0]["canonical_solution"] = "    return '\ud800' and None\n"
    path = benchmark.score("one", [True] * 4)
    assert Scorecard.read(path).samples[0].completion == benchmark.rows[0]["canonical_solution"]
    (benchmark.folder / "one.jsonl").unlink()  # the scorecard has what it needs
    assert reproduced(path)[0] == 0


@pytest.mark.slow
@needs_files
def test_omitted_completions_are_read_from_their_source(benchmark: SmallBenchmark) -> None:
    path = benchmark.score("one", [True, False, True, False])
    card = Scorecard.read(path)
    bare = tuple(
        sample.model_copy(update={"completion": "", "program": ""}) for sample in card.samples
    )
    card.model_copy(update={"samples": bare}).write(path)
    code, text = reproduced(path)
    assert code == 0
    assert re.search(r"\b4 verdicts\b", text)
    (benchmark.folder / "one.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"one\.jsonl"):
        reproduced(path)


@pytest.mark.slow
@needs_files
def test_reproduce_names_what_is_missing(benchmark: SmallBenchmark) -> None:
    path = benchmark.score("one", [True] * 4)
    moved = benchmark.file.rename(benchmark.folder / "moved.jsonl")
    with pytest.raises(FileNotFoundError, match="--data"):
        reproduced(path)
    assert reproduced(path, data=moved)[0] == 0
    moved.write_text("".join(moved.read_text().splitlines(keepends=True)[:3]))
    with pytest.raises(NotReady, match=r"moved\.jsonl.*humaneval.*--data"):
        reproduced(path, data=moved)
    with pytest.raises(ProblemError):
        reproduced(path, data=benchmark.folder / "one.jsonl")
    card = Scorecard.read(path)
    card.model_copy(update={"origin": None}).write(path)
    with pytest.raises(NotReproducible, match="passport"):
        reproduced(path)


@pytest.mark.slow
@needs_files
def test_failures_and_quality_of_a_file_are_shown(benchmark: SmallBenchmark) -> None:
    path, output = benchmark.score("one", [True, False, False, False]), io.StringIO()
    assert (
        show_failures(str(path), "", "", 5, Settings.read(), Console(file=output, width=200)) == 0
    )
    assert (
        show_failures(str(path), "", "1", 5, Settings.read(), Console(file=output, width=200)) == 0
    )
    assert show_quality([str(path)], "", Settings.read(), Console(file=output, width=200)) == 0
    text = output.getvalue()
    assert "3 of 4" in text
    assert "HumanEval/1" in text
    assert "separate_paren_groups" in text
    assert "return None" in text
    assert "25.0 %" in text
    assert "style" in text
    benchmark.rows[3]["canonical_solution"] = "    return (\n"
    show_failures(
        str(benchmark.score("no Python", [True] * 4)),
        "",
        "",
        5,
        Settings.read(),
        Console(file=output, width=200),
    )
    # The completion is judged unchanged, so no extraction is reported.
    assert " CE " in output.getvalue()
    assert "extraction" not in output.getvalue()
    contestant = read_contestant(path)
    assert contestant.name == "one"
    assert contestant.completions["HumanEval/1"] == ("    return None\n",)
