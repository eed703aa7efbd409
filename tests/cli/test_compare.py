"""`ratchet compare` compares scorecards from files and the store, and refuses unlike ones."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from artifacts.manifest import Manifest
from artifacts.store import Store
from cli.compare import compare
from cli.failures import read_score
from cli.lookup.scorecards import NoScorecard
from evaluation.logs.log import LogError
from evaluation.promotion.rate import Incomparable
from evaluation.reports.compare_models import ComparedModel, compare_models
from evaluation.scorecard import Scorecard
from resources.registry.ledger import Ledger
from resources.settings import Settings
from tests.cli.conftest import Called
from tests.evaluation.scorecards import BETTER, LUCKY, OLD, card, counted
from tests.resources.ledger_entries import put

Run = Callable[..., str]
LOGS = Path(__file__).parents[1] / "logs"


@pytest.fixture
def run_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))

    def run(
        *named: object,
        benchmarks: Sequence[str] = (),
        k: int = 1,
        suspects: Path | None = None,
        to: Path | None = None,
        metrics: Sequence[str] = (),
        width: int = 240,
    ) -> str:
        output = io.StringIO()
        compare(
            [str(name) for name in named],
            benchmarks,
            k=k,
            alpha=0.05,
            suspects=suspects,
            to=to,
            settings=Settings.read(),
            console=Console(file=output, width=width),
            metrics=metrics,
        )
        return output.getvalue()

    return run


def written(folder: Path, scorecard: Scorecard, name: str = "") -> Path:
    path = folder / f"{name or scorecard.checkpoint}.json"
    scorecard.write(path)
    return path


def stored(home: Path, scorecard: Scorecard) -> None:
    store, name = Store(home), f"{scorecard.checkpoint}--{scorecard.benchmark}"
    with store.draft("scores", name) as folder:
        scorecard.write(folder / "scorecard.json")
        store.publish(
            folder,
            Manifest(
                kind="scores",
                name=name,
                key=scorecard.content_hash,
                content_hash=scorecard.content_hash,
            ),
        )


def test_three_models_are_compared_with_holm_correction(run_compare: Run, tmp_path: Path) -> None:
    to = tmp_path / "rows.json"
    text = run_compare(*(written(tmp_path, scorecard) for scorecard in (OLD, BETTER, LUCKY)), to=to)
    rows = json.loads(to.read_text(encoding="utf-8"))
    assert [row["p_holm"] for row in rows] == pytest.approx([2 * rows[0]["p"], rows[1]["p"]])
    assert "better is better" in text
    assert "no difference shown" in text
    assert re.search(r"\b2 tests\b.*Holm", text)


def test_champion_and_previous_name_checkpoints(run_compare: Run, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "home" / "promotions.db")
    for scorecard in (OLD, BETTER):
        stored(tmp_path / "home", scorecard)
        put(ledger, scorecard.checkpoint, "promote")
    assert run_compare("champion", "previous") == run_compare(BETTER.checkpoint, OLD.checkpoint)


def test_a_version_that_is_not_there_is_named(run_compare: Run) -> None:
    with pytest.raises(NoScorecard, match="no previous yet"):
        run_compare("previous")


def test_the_shared_benchmark_version_is_compared(run_compare: Run, tmp_path: Path) -> None:
    for scorecard in (
        OLD,
        card("old", [1] * 400, benchmark_version="v2"),
        BETTER,
        card("better", [0] * 400, benchmark_version="v3"),
    ):
        stored(tmp_path / "home", scorecard)
    assert "25.0 → 37.5 %" in run_compare("old", "better")


def test_different_benchmark_versions_are_refused(run_compare: Run, tmp_path: Path) -> None:
    stored(tmp_path / "home", OLD)
    stored(tmp_path / "home", card("new", [1] * 400, benchmark_version="v2"))
    with pytest.raises(Incomparable, match="benchmark versions"):
        run_compare("old", "new")


@pytest.mark.slow
def test_runs_of_a_recipe_are_compared_over_seeds_and_tasks(
    run_compare: Run, tmp_path: Path
) -> None:
    runs = [
        written(tmp_path, card("run", [1] * (100 + i) + [0] * (300 - i)), f"old{i}")
        for i in range(3)
    ]
    better = [
        written(tmp_path, card("run", [1] * (200 + i) + [0] * (200 - i)), f"new{i}")
        for i in range(3)
    ]
    text = run_compare(",".join(map(str, runs)), ",".join(map(str, better)))
    assert "(3 and 3 runs)" in text
    assert "+25.0" in text
    with pytest.raises(Incomparable, match="two of each"):
        run_compare(runs[0], ",".join(map(str, better)))


def test_one_model_alone_shows_its_detectable_gain(run_compare: Run, tmp_path: Path) -> None:
    assert "gain of 6.3 points" in run_compare(written(tmp_path, OLD))


def test_pass_at_k_is_compared_without_suspect_tasks(run_compare: Run, tmp_path: Path) -> None:
    suspects = tmp_path / "suspects.json"
    suspects.write_text(
        json.dumps({"heldout": [{"task": "t000", "problem_id": "x", "how": "tests"}]}),
        encoding="utf-8",
    )
    text = run_compare(
        written(tmp_path, counted("old", [1] * 50)),
        written(tmp_path, counted("new", [5] * 50)),
        k=5,
        suspects=suspects,
    )
    assert "50.0 → 99.6 %" in text
    assert "without the 1 task" in text


def test_missing_scores_are_named(run_compare: Run, tmp_path: Path) -> None:
    stored(tmp_path / "home", OLD)
    with pytest.raises(NoScorecard, match=r"'nobody'.*\bold\b"):
        run_compare("old", "nobody")
    with pytest.raises(NoScorecard, match="mbpp"):
        run_compare("old", "old", benchmarks=["mbpp"])
    with pytest.raises(Incomparable, match="no benchmark"):
        run_compare("old", written(tmp_path, card("new", [1] * 9, benchmark="mbpp")))
    with pytest.raises(Incomparable, match=r"pass@5.*\b5\b.*\bt0 has 1\b"):
        run_compare("old", "old", k=5)


def test_a_truncated_scorecard_is_refused_in_one_line(ratchet: Called, tmp_path: Path) -> None:
    complete = written(tmp_path, OLD)
    half = tmp_path / "half.json"
    half.write_text(complete.read_text(encoding="utf-8")[:500], encoding="utf-8")
    code, _, errors = ratchet(tmp_path / "home", "compare", str(complete), str(half))
    assert code == 2
    assert errors.startswith(f"error: {half}: ")
    assert errors.count("\n") == 1


@pytest.mark.slow
def test_equal_models_differ_significantly_at_most_at_alpha() -> None:
    import numpy as np

    rng, false = np.random.default_rng(0), 0
    for _ in range(150):
        cards = [card(f"m{i}", (rng.random(80) < 0.4).tolist()) for i in range(4)]
        false += any(
            row.p_holm <= 0.05
            for row in compare_models(
                [ComparedModel(c.checkpoint, {"heldout": (c,)}) for c in cards]
            )
        )
    assert false / 150 <= 0.09


def test_logs_of_another_tool_are_compared(run_compare: Run, tmp_path: Path) -> None:
    to = tmp_path / "rows.json"
    text = run_compare(LOGS / "inspect/small.eval", LOGS / "inspect/one_error.eval", to=to)
    [row] = json.loads(to.read_text(encoding="utf-8"))
    assert (row["first"], row["other"]) == ("mockllm/small", "mockllm/large")
    assert (row["tasks"], row["won"], row["lost"], row["tasks_needed"]) == (9, 7, 0, 9)
    assert "mockllm/large is better" in text
    assert "add-2" in text
    assert "Inspect 0.3.285, match" in text


def test_another_harness_or_prompt_is_named_before_the_results(
    run_compare: Run, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(LOGS / "verifiers" / "large-0.1", tmp_path / "large"))
    about = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    about["version_info"]["vf_version"] = "0.1.12"
    (folder / "metadata.json").write_text(json.dumps(about), encoding="utf-8")
    rows = [json.loads(line) for line in (folder / "results.jsonl").open(encoding="utf-8")]
    for row in rows:
        row["prompt"].insert(0, {"role": "system", "content": "Think first."})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "results.jsonl").write_text(text, encoding="utf-8")
    to = tmp_path / "rows.json"
    text = run_compare(LOGS / "verifiers" / "small-0.1", folder, to=to)
    differences = text[: text.index("benchmark")]
    assert re.search(r"OTHER HARNESS: sums: .*verifiers 0\.1\.14.*verifiers 0\.1\.12", differences)
    assert "OTHER PROMPTS: sums" in differences
    [row] = json.loads(to.read_text(encoding="utf-8"))
    assert row["harnesses"] == ["verifiers 0.1.14, reward", "verifiers 0.1.12, reward"]
    assert len({*row["prompts"]}) == 2


def test_equal_harnesses_and_prompts_are_named_once(run_compare: Run) -> None:
    text = run_compare(*(LOGS / "harbor" / name for name in ("small", "large")))
    assert "OTHER" not in text
    assert re.search(r"sums: Harbor 0\.26\.0, terminus-2 2\.0\.0, reward; prompts \w{12}\.", text)


def test_a_folder_of_samples_is_compared_by_the_named_scores(run_compare: Run) -> None:
    folders = [LOGS / "lm_eval" / name for name in ("small", "large")]
    text = run_compare(*folders, metrics=["exact_match,strict-match", "acc"])
    assert text.count("30.0 → 100.0 %") == 2
    assert "2 tests" in text


def test_unequal_numbers_of_completions_are_named(run_compare: Run) -> None:
    text = run_compare(LOGS / "inspect/epochs.eval", LOGS / "inspect/first_four.eval")
    assert re.search(r"mockllm/small 2, mockllm/large 1\b", text)


@pytest.mark.parametrize("width", [240, 60])
def test_no_figure_is_cut_off(run_compare: Run, width: int) -> None:
    text = run_compare(*sorted(LOGS.glob("evalplus/*")), width=width)
    assert "−60.0 (−83.2 to −15.6)" in text
    assert "large is better" in text
    assert "…" not in text


def test_commands_that_need_programs_refuse_a_log_without(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    with pytest.raises(LogError, match="Inspect"):
        read_score(str(LOGS / "inspect/small.eval"), lambda: store)
    [results] = LOGS.glob("evalplus/small*")
    assert read_score(str(results), lambda: store).keeps_completions
