"""Logs that other tools wrote (tests/logs/README.md) become scorecards."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from evaluation.logs.log import LogError
from evaluation.logs.registry import read_log
from evaluation.promotion.comparison import check_comparable, compare
from evaluation.promotion.rate import Incomparable, values_of
from evaluation.scorecard import Scorecard

LOGS = Path(__file__).parents[1] / "logs"
INSPECT = LOGS / "inspect"


def card(file: str, *scores: str) -> Scorecard:
    """Return the card of the one file of this name."""
    [path] = LOGS.glob(file)
    scorecard = read_log(path, scores)
    assert scorecard is not None
    return scorecard


@pytest.mark.parametrize(
    ("file", "score", "model", "benchmark", "version", "share"),
    [
        ("inspect/small.eval", "match", "mockllm/small", "sums", "0", 0.3),
        ("inspect/large.eval", "", "mockllm/large", "sums", "0", 1.0),
        ("inspect/scorers.eval", "parts/exact", "mockllm/small", "sums", "0", 0.75),
        ("inspect/epochs.eval", "", "mockllm/small", "sums", "0", 0.875),
        ("lm_eval/small/samples_sums*", "exact_match,strict-match", "made/small", "sums", "1", 0.3),
        (
            "lm_eval/small/samples_sums*", "exact_match,flexible-extract", "made/small", "sums",
            "1.0", 0.5,
        ),
        ("lm_eval/large/samples_choices*", "acc", "made/large", "choices", "1.0", 1.0),
        ("evalplus/small*", "", "small", "humaneval+", "", 0.3),
        ("evalplus/small*", "base", "small", "humaneval+", "", 0.8),
        ("evalplus_older/small*", "", "small", "humaneval+", "0", 0.3),
        ("evalplus_older/small*", "base", "small", "humaneval+", "0", 0.8),
        ("livecodebench/small/*", "", "small", "livecodebench", "", 0.3),
        ("harbor/large/result.json", "", "terminus-2 large", "sums", "", 1.0),
        ("verifiers/small-0.1/results.jsonl", "", "made/small", "sums", "", 0.3),
        ("verifiers/small-0.4/traces.jsonl", "", "made/small", "sums", "", 0.3),
        ("verifiers/small-0.4/traces.jsonl", "exact", "made/small", "sums", "", 0.3),
        ("bigcodebench/large*eval_results*", "", "large--main", "bigcodebench-complete", "", 1.0),
    ],
)  # fmt: skip
def test_a_log_has_the_score_that_its_tool_reports(
    file: str, score: str, model: str, benchmark: str, version: str, share: float
) -> None:
    scorecard = card(file, *[score] if score else [])
    assert (scorecard.checkpoint, scorecard.benchmark) == (model, benchmark)
    assert version in scorecard.benchmark_version
    assert scorecard.pass_at_1 == pytest.approx(share)


def test_json_and_zip_logs_of_inspect_are_alike() -> None:
    assert card("inspect/first_four.json") == card("inspect/first_four.eval")


def test_a_log_without_zstandard_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    log = json.loads((INSPECT / "first_four.json").read_text(encoding="utf-8"))
    samples = [
        {key: sample.get(key) for key in ("id", "epoch", "input", "scores", "error")}
        for sample in log.pop("samples")
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(log))
        archive.writestr("summaries.json", json.dumps(samples))
    assert read_log(path, ()) == card("inspect/first_four.eval")


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    content = bytearray((INSPECT / "small.eval").read_bytes())
    with zipfile.ZipFile(INSPECT / "small.eval") as archive:
        member = archive.getinfo("summaries.json")
    content[member.header_offset + 60 + member.compress_size // 2] ^= 1
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(LogError, match=r"summaries\.json is damaged"):
        read_log(path, ())
    path.write_bytes(content[:5000])
    with pytest.raises(LogError, match=re.escape(str(path))):
        read_log(path, ())


def test_a_sample_with_an_error_is_no_zero() -> None:
    scorecard = card("inspect/one_error.eval")
    assert "add-2" in scorecard.unmeasured
    assert "container" in scorecard.unmeasured["add-2"]
    assert scorecard.pass_at_1 == 1.0
    assert len(scorecard.samples) == 9


@pytest.mark.parametrize(
    ("file", "task", "why"),
    [
        ("harbor/large/result.json", "add-9", "EnvironmentStartTimeoutError"),
        ("verifiers/large-0.1/results.jsonl", "2", "lost"),
    ],
)
def test_a_rollout_that_failed_is_no_zero(file: str, task: str, why: str) -> None:
    scorecard = card(file)
    assert [*scorecard.unmeasured] == [task]
    assert why in scorecard.unmeasured[task]
    assert scorecard.pass_at_1 == 1.0


def test_one_of_two_completions_without_a_verdict_is_left_out() -> None:
    for file in ("livecodebench/large/*", "verifiers/large-0.4/traces.jsonl"):
        scorecard = card(file)
        assert (len(scorecard.samples), scorecard.unmeasured, scorecard.pass_at_1) == (19, {}, 1.0)


@pytest.mark.parametrize(
    ("file", "named"),
    [("errors.eval", r"2 of 4 tasks.*add-1"), ("failed.eval", "status error")],
)
def test_a_log_of_a_broken_run_is_refused(file: str, named: str) -> None:
    with pytest.raises(LogError, match=f"{re.escape(file)}.*{named}.*eval-retry"):
        card(f"inspect/{file}")


def test_a_task_whose_own_solution_fails_is_left_out() -> None:
    assert [*card("bigcodebench/small*eval_results*").unmeasured] == ["BigCodeBench/9"]


@pytest.mark.parametrize(
    ("file", "scores", "listed"),
    [
        ("lm_eval/small/samples_sums*", (), "exact_match,strict-match; exact_match,flexible"),
        ("lm_eval/small/samples_sums*", ("exact_match",), "exact_match,strict-match; exact_match"),
        ("inspect/scorers.eval", (), "match; includes; parts/exact; parts/brevity"),
        ("evalplus/small*", ("extra",), "base; plus"),
    ],
)
def test_an_ambiguous_or_unknown_score_lists_all(
    file: str, scores: tuple[str, ...], listed: str
) -> None:
    with pytest.raises(LogError, match=f"--metric.*{listed}"):
        card(file, *scores)


def test_a_repeated_row_is_named(tmp_path: Path) -> None:
    [path] = LOGS.glob("lm_eval/small/samples_choices*")
    twice = tmp_path / path.name
    twice.write_text(2 * path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(LogError, match=f"{twice.name}: task 0 has two rows of acc,none"):
        read_log(twice, ())


def copied(folder: str, to: Path) -> Path:
    return Path(shutil.copytree(LOGS / folder, to / "copy"))


def test_a_job_that_is_not_complete_is_refused(tmp_path: Path) -> None:
    job = copied("harbor/small", tmp_path)
    shutil.rmtree(job / "add-3__small")
    assert "add-3" in (read_log(job / "result.json", ()) or pytest.fail()).unmeasured
    (job / "lock.json").unlink()
    with pytest.raises(LogError, match=r"9 of 10 trials.*lock\.json"):
        read_log(job / "result.json", ())
    (job / "add-4__small" / "result.json").write_text("{")
    with pytest.raises(LogError, match=r"add-4__small.*not complete"):
        read_log(job / "result.json", ())


def test_a_copied_trial_is_named(tmp_path: Path) -> None:
    job = copied("harbor/small", tmp_path)
    shutil.copytree(job / "add-3__small", job / "add-3__small (copy)")
    with pytest.raises(LogError, match="is there twice"):
        read_log(job / "result.json", ())


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("verifiers/small-0.1/results.jsonl", r"example \d has 2 rollouts.*says 1"),
        ("verifiers/small-0.4/traces.jsonl", "episode .* is there twice"),
        ("livecodebench/small/Scenario.codegeneration_2_0.2_eval_all.json", "made_0 is there"),
        ("evalplus_older/small_eval_results.json", "'HumanEval/0' is there twice"),
    ],
)
def test_a_task_that_is_there_twice_is_named(file: str, fault: str, tmp_path: Path) -> None:
    path = copied(str(Path(file).parent), tmp_path) / Path(file).name
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        text += text.splitlines()[0] + "\n"
    elif text.startswith("["):
        text = json.dumps([*json.loads(text), json.loads(text)[0]])
    else:
        text = text.replace("HumanEval/1", "HumanEval/0")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LogError, match=f"{re.escape(path.name)}.*{fault}"):
        read_log(path, ())


@pytest.mark.parametrize("folder", ["small-0.1", "small-0.4"])
def test_a_file_of_rollouts_that_is_cut_off_is_named(folder: str, tmp_path: Path) -> None:
    [path] = copied(f"verifiers/{folder}", tmp_path).glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(LogError, match=rf"{path.name}: line \d+ .*cut off"):
        read_log(path, ())


def test_a_value_of_a_wrong_type_is_no_log(tmp_path: Path) -> None:
    job = copied("harbor/small", tmp_path)
    trial = job / "add-3__small" / "result.json"
    content = json.loads(trial.read_text(encoding="utf-8"))
    content["verifier_result"] = {"rewards": [1]}
    trial.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(LogError, match="Harbor"):
        read_log(job / "result.json", ())


def test_a_metric_where_less_is_better_is_no_score(tmp_path: Path) -> None:
    [samples], [results] = (
        LOGS.glob(f"lm_eval/small/{name}*") for name in ("samples_c", "results")
    )
    about = json.loads(results.read_text(encoding="utf-8"))
    about["higher_is_better"]["choices"]["acc"] = False
    for path, text in (
        (samples, samples.read_text(encoding="utf-8")),
        (results, json.dumps(about)),
    ):
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    with pytest.raises(LogError, match="no score"):
        read_log(tmp_path / samples.name, ())


def test_logs_of_other_tasks_are_not_comparable() -> None:
    with pytest.raises(Incomparable, match=r"6 tasks.*add-4"):
        check_comparable(card("inspect/small.eval"), card("inspect/first_four.eval"))
    large = card("inspect/large.eval")
    hashes = large.task_hashes | {"add-3": "another text"}
    with pytest.raises(Incomparable, match=r"1 tasks? .*add-3"):
        check_comparable(large, large.model_copy(update={"task_hashes": hashes}))


def test_part_marks_are_compared_by_their_means() -> None:
    before = card("inspect/scorers.eval", "parts/brevity")
    samples = [each.model_copy(update={"value": 0.9}) for each in before.samples]
    comparison = compare(before, before.model_copy(update={"samples": tuple(samples)}))
    assert comparison.difference == pytest.approx(0.9 - (3 + 1 / 7) / 4)
    assert comparison.before.solved is None
    assert comparison.smallest_gain
    with pytest.raises(Incomparable, match="part marks"):
        values_of({"add-0": (0.5, 2)}, k=2)


def test_another_file_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for text in ("{", "[]", '{"eval": {}}', '{"benchmark": "heldout"}'):
        path.write_text(text, encoding="utf-8")
        assert read_log(path, ()) is None
    path.write_text('{"eval": {"HumanEval/0": [{"base_status": "pass"}]}}', encoding="utf-8")
    with pytest.raises(LogError, match=r"other\.json.*EvalPlus.*plus_status"):
        read_log(path, ())
