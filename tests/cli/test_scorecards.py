"""The scorecard of `ratchet evaluate --benchmark` in the rest of the house: compared, run again, its failures shown. Real tasks, the real sandbox."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.compare import compare
from cli.evaluate_benchmark import Asked, evaluate_completions
from cli.failures import show_failures
from cli.quality import show_quality
from cli.reproduce import NotReproducible, reproduce
from cli.scorecards import NoScorecard
from evaluation.preference.contestants import read_contestant
from evaluation.promotion.comparison import Incomparable
from evaluation.scorecard import Scorecard
from problems.columns import ProblemError
from resources.home import NotReady
from resources.settings import Settings

DATA = Path(__file__).parents[3] / "shared" / "data"
HUMANEVAL = DATA / "humaneval" / "HumanEval.jsonl.gz"
QUIET = Console(quiet=True)
needs_files = pytest.mark.skipif(not HUMANEVAL.exists(), reason=f"no benchmark files in {DATA}")


class Bench:
    """HumanEval's first tasks in a file, and scorecards over answers to them: a canonical one where `right` says so, else a wrong one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "tasks.jsonl"
        with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as lines:
            self.rows = [json.loads(next(lines)) for _ in range(4)]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in self.rows))

    def score(self, name: str, right: list[bool], **asked: Any) -> Path:
        """The scorecard's path."""
        answers = [
            (row["task_id"], row["canonical_solution"] if ok else "    return None\n")
            for row, ok in zip(self.rows, right, strict=False)
        ]
        file = self.folder / f"{name}.jsonl"
        file.write_text(
            "".join(
                json.dumps({"task_id": task, "completion": text}) + "\n" for task, text in answers
            )
        )
        out = self.folder / name / "verdicts.jsonl"
        said = Asked("humaneval", **{"data": self.file, "out": out, **asked})
        assert evaluate_completions(file, said, Settings.read().home.path, QUIET, QUIET) == 0
        return out.with_name("verdicts.scorecard.json")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    return Bench(tmp_path)


def compared(*named: Path, suspects: Path | None = None) -> str:
    told = io.StringIO()
    compare(
        [str(name) for name in named],
        [],
        1,
        0.05,
        suspects,
        None,
        Settings.read(),
        Console(file=told, width=240),
    )
    return told.getvalue()


def again(path: Path, out: Path | None = None, data: Path | None = None) -> tuple[int, str]:
    told = io.StringIO()
    return reproduce(
        str(path), out, Settings.read(), Console(file=told, width=240), data
    ), told.getvalue()


@needs_files
def test_scorecards_are_compared_task_by_task_by_file_or_folder(bench: Bench) -> None:
    one, two = (
        bench.score("one", [True, False, False, False]),
        bench.score("two", [True, True, True, False]),
    )
    for named in ((one, two), (one.parent, two.parent)):
        text = compared(*named)
        assert "25.0 → 75.0 %" in text and "│ 2, 0" in text and "no difference shown" in text
    assert "solves 25.0 % (1 of 4" in compared(one)  # what its tasks can show


@needs_files
def test_another_version_or_set_of_tasks_is_refused(bench: Bench) -> None:
    one, fewer = bench.score("one", [True] * 4), bench.score("fewer", [True] * 3, partial=True)
    with pytest.raises(
        Incomparable,
        match=r"humaneval: 1 tasks are in one scorecard only, the first is HumanEval/3",
    ):
        compared(one, fewer)
    changed = [row | {"test": row["test"] + "\n# another release"} for row in bench.rows]
    (other := bench.folder / "other.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in changed)
    )
    with pytest.raises(
        Incomparable,
        match=r"one and two were scored with different benchmark versions .*: evaluate both on the same one",
    ):
        compared(one, bench.score("two", [True] * 4, data=other))
    assert "PARTIAL: 1 tasks of humaneval have no answer of" in compared(
        fewer, bench.score("second", [True, False, True], partial=True)
    )


@needs_files
def test_a_folder_with_two_scores_on_a_benchmark_and_a_file_that_is_none_are_named(
    bench: Bench,
) -> None:
    one, two = bench.score("one", [True] * 4), bench.score("two", [True] * 4)
    two.rename(one.with_name("two.scorecard.json"))
    with pytest.raises(
        NoScorecard,
        match=r"holds two scores on humaneval, two.scorecard.json and verdicts.scorecard.json",
    ):
        compared(one.parent, one)
    with pytest.raises(NoScorecard, match="no whole scorecard"):
        compared(one, one.with_name("verdicts.jsonl"))


@needs_files
def test_the_clean_score_stands_beside_where_tasks_resemble_the_training_data(bench: Bench) -> None:
    one, two = (
        bench.score("one", [True, False, False, False]),
        bench.score("two", [True, True, False, False]),
    )
    suspects = bench.folder / "suspects.json"
    suspects.write_text(
        json.dumps({"humaneval": [{"task": "humaneval/0", "problem_id": "x/1", "how": "tests"}]})
    )
    assert (
        "humaneval without the 1 tasks" in (text := compared(one, two, suspects=suspects))
        and "0.0 % (0 of 3" in text
    )
    told = bench.score(
        "told", [True, False, False, False], suspects={"humaneval": ("humaneval/0",)}
    )
    figures = json.loads(told.read_text())["figures"]
    assert figures["scores"]["base"]["pass@1"]["value"] == 0.25
    assert (
        figures["clean"]["left_out"] == ["HumanEval/0"]
        and figures["clean"]["scores"]["base"]["pass@1"]["value"] == 0.0
    )


@needs_files
def test_a_score_is_judged_again_from_its_own_answers_and_a_forged_verdict_is_named(
    bench: Bench,
) -> None:
    path = bench.score("one", [True, False, True, False])
    (bench.folder / "one.jsonl").unlink()
    card = Scorecard.read(path)
    code, text = again(path, bench.folder / "again.json")
    assert (
        code == 0
        and "the same verdicts; 0 answers are worded otherwise." in text
        and "Nothing of the passport differs." in text
    )
    assert Scorecard.read(bench.folder / "again.json").content_hash == card.content_hash
    forged = card.samples[1].model_copy(update={"verdict": "AC"})
    card.model_copy(update={"samples": (card.samples[0], forged, *card.samples[2:])}).write(path)
    code, text = again(path)
    assert (
        code == 1
        and f"- HumanEval/1#0: AC was recorded, {card.samples[1].verdict} now; the same answer"
        in text
    )


@needs_files
def test_an_answer_that_no_utf_8_holds_is_kept_to_the_letter(bench: Bench) -> None:
    bench.rows[0]["canonical_solution"] = "    return '\ud800' and None\n"
    path = bench.score("one", [True] * 4)
    assert Scorecard.read(path).samples[0].answer == bench.rows[0]["canonical_solution"]
    assert again(path)[0] == 0


@needs_files
def test_answers_that_were_left_out_are_read_again_where_they_came_from(bench: Bench) -> None:
    path = bench.score("one", [True, False, True, False])
    card = Scorecard.read(path)
    bare = tuple(sample.model_copy(update={"answer": "", "program": ""}) for sample in card.samples)
    card.model_copy(update={"samples": bare}).write(path)
    code, text = again(path)
    assert code == 0 and "the same verdicts; the recorded answers were left out." in text
    (bench.folder / "one.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"completions .*one\.jsonl: there is no such file"):
        again(path)


@needs_files
def test_what_a_score_cannot_be_run_again_without_is_named(bench: Bench) -> None:
    path = bench.score("one", [True] * 4)
    moved = bench.file.rename(bench.folder / "moved.jsonl")
    with pytest.raises(FileNotFoundError, match="check --data"):
        again(path)
    assert again(path, data=moved)[0] == 0
    moved.write_text("".join(moved.read_text().splitlines(keepends=True)[:3]))
    with pytest.raises(
        NotReady,
        match=r"holds another version of humaneval .*: give the file that was scored with --data",
    ):
        again(path, data=moved)
    with pytest.raises(ProblemError):
        again(path, data=bench.folder / "one.jsonl")
    card = Scorecard.read(path)
    card.model_copy(update={"origin": None}).write(path)
    with pytest.raises(NotReproducible, match="whose passport lies in the store"):
        again(path)


@needs_files
def test_failures_and_quality_are_shown_of_a_file(bench: Bench) -> None:
    path, told = bench.score("one", [True, False, False, False]), io.StringIO()
    assert show_failures(str(path), "", "", 5, Settings.read(), Console(file=told, width=200)) == 0
    assert show_failures(str(path), "", "1", 5, Settings.read(), Console(file=told, width=200)) == 0
    assert show_quality([str(path)], "", Settings.read(), Console(file=told, width=200)) == 0
    text = told.getvalue()
    assert "one on humaneval: 3 of 4 answers fail" in text and "HumanEval/1, answer 0" in text
    assert "separate_paren_groups" in text and "return None" in text  # the prompt and the answer
    assert "25.0 %" in text and "style" in text
    bench.rows[3]["canonical_solution"] = "    return (\n"
    show_failures(
        str(bench.score("no Python", [True] * 4)),
        "",
        "",
        5,
        Settings.read(),
        Console(file=told, width=200),
    )
    assert (
        " CE " in told.getvalue() and "extraction" not in told.getvalue()
    )  # judged as given: nothing was extracted
    contestant = read_contestant(path)
    assert contestant.name == "one" and contestant.answers["HumanEval/1"] == ("    return None\n",)
