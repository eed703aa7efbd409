"""From completions to a scorecard, with the real sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks import Benchmark, NotMeasured, from_problems, heldout
from evaluation.benchmarks.registry import load_public, measured, published
from evaluation.completions import Completion
from evaluation.evaluate import evaluate
from evaluation.judging.judge import Verdicts, judge
from evaluation.judging.reports import NotJudged
from evaluation.judging.scoring import harness_version
from evaluation.sampling import CompletionOutput, Sampling
from evaluation.scorecard import Scorecard
from problems.catalogue import add_source
from problems.reading.place import Place
from problems.schema import Problem
from sandbox.protocol import Job, Report, Verdict
from sandbox.sandbox import Sandbox
from tests.evaluation.judging import judge_completions

SHORT = Sampling(max_new_tokens=8)


def fenced(code: str) -> CompletionOutput:
    return CompletionOutput(f"```python\n{code}\n```", 9, False)


def data(name: str) -> Path:
    import os

    root = Path(os.environ.get("RATCHET_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / name).exists():
        pytest.skip(f"needs {name} under RATCHET_DATA or ../shared/data")
    return root / name


def test_verdicts_are_in_the_order_of_the_problems(
    problems: list[Problem], sandbox: Sandbox
) -> None:
    benchmark = heldout(problems)
    wrong = "def solve(x):\n    return 'no'"
    outputs = [
        fenced(problem.solutions[0] if i % 2 else wrong)
        for i, problem in enumerate(benchmark.problems)
    ]
    samples, isolation = judge_completions(benchmark, outputs, sandbox)
    assert [s.task_id for s in samples] == [p.problem_id for p in benchmark.problems]
    assert [s.verdict == "AC" for s in samples] == [bool(i % 2) for i in range(len(outputs))]
    assert isolation == sandbox.describe()


def test_two_evaluations_give_one_content_hash(
    checkpoint: Path, problems: list[Problem], sandbox: Sandbox, tmp_path: Path
) -> None:
    benchmark = heldout(problems, SHORT)
    stages: list[str] = []
    first = evaluate(
        checkpoint,
        "tiny",
        "abc",
        benchmark,
        sandbox,
        on_progress=lambda stage, done, of: stages.append(stage),
    )
    second = evaluate(checkpoint, "tiny", "abc", benchmark, sandbox)
    assert first.content_hash == second.content_hash
    assert first.measured != second.measured
    assert set(stages) == {"generate", "judge"}
    first.write(tmp_path / "card.json")
    assert Scorecard.read(tmp_path / "card.json") == first


class Flaky:
    """The real sandbox, except that its first run fails for all jobs but one."""

    def __init__(self, sandbox: Sandbox, failures: int) -> None:
        self.sandbox, self.failures = sandbox, failures

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterator[Report]:
        self.failures -= 1
        for at, report in enumerate(self.sandbox.run(jobs)):
            yield (
                replace(report, verdict=Verdict.INFRA, detail="worker gone")
                if at and self.failures >= 0
                else report
            )


def test_a_job_that_the_sandbox_failed_is_retried(
    problems: list[Problem], sandbox: Sandbox
) -> None:
    benchmark = heldout(problems)
    outputs = [fenced(problem.solutions[0]) for problem in benchmark.problems]
    samples, _ = judge_completions(benchmark, outputs, Flaky(sandbox, 1))
    assert all(s.verdict == "AC" for s in samples)


def test_completions_without_a_verdict_give_no_score(
    problems: list[Problem], sandbox: Sandbox
) -> None:
    benchmark = heldout(problems)
    outputs = [fenced(problem.solutions[0]) for problem in benchmark.problems]
    with pytest.raises(NotJudged, match=r"have no verdict after 3 attempts.*worker gone"):
        judge_completions(benchmark, outputs, Flaky(sandbox, 99))


def test_other_problems_or_wording_change_the_version(problems: list[Problem]) -> None:
    versions = {
        heldout(problems).version,
        heldout(problems[1:]).version,
        heldout([replace(problems[0], statement="?"), *problems[1:]]).version,
    }
    assert len(versions) == 3
    assert heldout(problems[::-1]).version == heldout(problems).version


def test_a_benchmark_without_problems_or_with_one_twice_is_refused(problems: list[Problem]) -> None:
    with pytest.raises(ValueError, match="no tasks"):
        from_problems("mine", [], SHORT)
    with pytest.raises(ValueError, match="twice"):
        from_problems("mine", [problems[0], problems[0]], SHORT)


def test_an_unavailable_public_benchmark_has_a_reason(tmp_path: Path) -> None:
    without = load_public("humaneval", None, tmp_path)
    missing = load_public("mbpp", Place(tmp_path / "gone.jsonl"), tmp_path)
    assert isinstance(without, NotMeasured)
    assert "ratchet data add humaneval" in without.reason
    assert isinstance(missing, NotMeasured)
    assert "gone.jsonl" in missing.reason


def test_one_bad_row_leaves_the_benchmark_unmeasured(tmp_path: Path) -> None:
    (tmp_path / "mbpp.jsonl").write_text('{"task_id": 11}\n', encoding="utf-8")
    benchmark = load_public("mbpp", Place(tmp_path / "mbpp.jsonl"), tmp_path)
    assert isinstance(benchmark, NotMeasured)
    assert "1 rows cannot be read" in benchmark.reason


def test_canonical_solutions_of_humaneval_are_accepted(sandbox: Sandbox, tmp_path: Path) -> None:
    benchmark = load_public("humaneval", Place(data("humaneval")), tmp_path)
    assert not isinstance(benchmark, NotMeasured)
    assert len(benchmark.problems) == 164
    some = replace(benchmark, problems=benchmark.problems[::16])
    whole, _ = judge_completions(
        some, [fenced(problem.solutions[0]) for problem in some.problems], sandbox
    )
    assert all(s.verdict == "AC" for s in whole)


def test_mbpp_has_its_500_test_tasks(tmp_path: Path) -> None:
    benchmark = load_public("mbpp", Place(data("mbpp") / "mbpp.jsonl"), tmp_path)
    assert not isinstance(benchmark, NotMeasured)
    assert len(benchmark.problems) == 500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("humaneval", "humaneval"),
        ("humaneval+", "humanevalplus/HumanEvalPlus.jsonl.gz"),
        ("mbpp", "mbpp/mbpp.jsonl"),
        ("mbpp+", "mbppplus"),
        ("leetcode", "leetcode/LeetCodeDataset-v0.3.1-test.jsonl.gz"),
    ],
)
def test_a_profile_can_name_every_benchmark(name: str, file: str, tmp_path: Path) -> None:
    place = data(file)
    settings = BenchmarkSettings(name=name, n=5, temperature=0.8, prompt="upstream")
    add_source(tmp_path, published()[name].source.name, place)
    benchmark = measured(settings, tmp_path)
    assert not isinstance(benchmark, NotMeasured), benchmark.reason
    assert {benchmark.task_id(problem) for problem in benchmark.problems} <= set(
        benchmark.harness.tasks
    )
    assert benchmark.sampling.n == 5
    assert isinstance(benchmark.model_prompt(benchmark.problems[0]), str)
    assert benchmark.version != replace(benchmark, form="chat").version


@pytest.mark.slow
def test_a_benchmark_without_its_packages_names_their_command(tmp_path: Path) -> None:
    add_source(tmp_path, "bigcodebench", data("bigcodebench"))
    bigcodebench = measured(BenchmarkSettings(name="bigcodebench"), tmp_path)
    assert isinstance(bigcodebench, NotMeasured)
    assert "benchmarks install bigcodebench" in bigcodebench.reason


@pytest.mark.slow
def test_tasks_of_a_training_split_are_no_benchmark(tmp_path: Path) -> None:
    add_source(tmp_path, "codecontests", data("codecontests"))
    train = measured(BenchmarkSettings(name="codecontests"), tmp_path)
    assert isinstance(train, NotMeasured)
    assert "may be trained on" in train.reason


@pytest.mark.slow
def test_a_harness_follows_the_rules_of_its_release(sandbox: Sandbox, tmp_path: Path) -> None:
    add_source(tmp_path, "mbppplus", data("mbppplus/MbppPlus.jsonl.gz"))
    # Task 2 asks for the shared elements of two tuples; a list has other than the expected type.
    program = "def similar_elements(a, b):\n    return sorted(set(a) & set(b))"
    verdicts = []
    for name in ("mbpp+", "mbpp+evalplus-0.2"):
        benchmark = measured(BenchmarkSettings(name=name), tmp_path)
        assert isinstance(benchmark, Benchmark)
        [each] = judge(
            benchmark.harness,
            [Completion("Mbpp/2", 0, program, True)],
            lambda: nullcontext(sandbox),
            Verdicts(None),
        )
        verdicts.append((each.verdict, harness_version(benchmark.harness)))
    assert [verdict for verdict, _ in verdicts] == ["AC", "WA"]
    assert verdicts[0][1].endswith("0.3.1)")
    assert verdicts[1][1].endswith("0.2)")
