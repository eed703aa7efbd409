"""The report: a self-contained file with the same facts as its JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evaluation.benchmarks import Benchmark, heldout
from evaluation.promotion.gate import Decision, Rate, decide
from evaluation.reports.facts import (
    BenchmarkScore,
    Curve,
    Environment,
    Link,
    Minutes,
    Model,
    ReportFacts,
    Score,
    Spending,
    Step,
    Unmeasured,
)
from evaluation.reports.lineage import picture
from evaluation.reports.report import changed_lines, groups, pick_examples, render, write_report
from evaluation.scorecard import Sample, Scorecard
from problems.schema import Problem
from problems.sources.compositional import FamilyConfig, heldout_draw
from tests.browser import Browser


def card(name: str, benchmark: Benchmark, solves: list[bool]) -> Scorecard:
    wrong = "def solve(x):\n    x = sorted(x)\n    return x[::-1]"
    samples = tuple(
        Sample(
            task_id=problem.problem_id,
            answer="",
            program=problem.solutions[0] if solved else wrong,
            verdict="AC" if solved else "WA",
            passed=10 if solved else 3,
            total=10,
            tags=problem.tags,
        )
        for problem, solved in zip(benchmark.problems, solves, strict=True)
    )
    return Scorecard(
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        harness_version="1",
        checkpoint=name,
        checkpoint_hash=f"hash of {name}",
        sampling={},
        samples=samples,
        isolation="root: namespaces+uid+seccomp+rlimits+cgroup",
    )


def facts_of(old: list[bool], new: list[bool], first: bool = False, **changes: Any) -> ReportFacts:
    benchmark = heldout(heldout_draw(FamilyConfig(), 1, len(old)))
    before, after = card("chain-0001", benchmark, old), card("chain-0002", benchmark, new)
    zero = BenchmarkScore(
        name="humaneval",
        version="5f8e3ac1d5b2" * 5,
        conventions="greedy, asked as a chat; published unit tests, 3 s a program",
        champion=Rate.counted(0, 164),
        challenger=Rate.counted(0, 164),
        left_out=3,
        champion_clean=Rate.counted(0, 161),
        challenger_clean=Rate.counted(0, 161),
        note="It has a million parameters and has seen small compositions only",
    )
    made = ReportFacts(
        chain="chain-0002",
        profile="embedded",
        created_at="2026-11-21 03:14 UTC",
        version=2,
        model=Model(
            architecture="a Qwen2 made from scratch, with its own tokenizer",
            parameters=862_592,
            warm_up=(
                "It was warmed up on 2000 demonstrations with deliberate slips: in 55 % of the "
                "operations that people get wrong, the demonstration is wrong too, as code from "
                "the web is. It starts weak, and reinforcement learning has these slips to unlearn."
            ),
            training=(
                "Then verl's GRPO trained it for 30 steps on other problems, paid by tests that "
                "its programs pass in the sandbox; "
                "no problem below was seen in training, and no composition either."
            ),
            settings={
                "algorithm": "GRPO, verl 0.9.1",
                "steps": 30,
                "problems a step": 32,
                "answers a problem": 8,
                "learning rate": 2e-4,
            },
        ),
        decision=decide(None if first else before, after, others=[]),
        funnel=(
            Step(stage="raw problems", problems=3328, content_hash="8b1f5ac02d7e" * 5),
            Step(
                stage="verified problems",
                problems=3321,
                content_hash="01ffe0c9ab41" * 5,
                removed={"fail their tests": 4, "too weak": 3},
            ),
            Step(
                stage="clean problems",
                problems=3302,
                content_hash="77d0e63c0b1a" * 5,
                removed={"near duplicates": 19},
            ),
        ),
        curve=Curve(
            rewards=tuple(
                (i, -0.42 + 0.022 * i + (0.09 if i % 3 == 0 else -0.05 if i % 4 == 1 else 0))
                for i in range(1, 31)
            ),
            scores=tuple(
                Score(step=s, benchmark="validation", rate=Rate.counted(n, 128))
                for s, n in ((0, 43), (10, 54), (20, 66), (30, 70))
            ),
            figures={
                "KL": tuple((i, 0.002 * i) for i in range(1, 31)),
                "entropy": tuple((i, 0.9 / i) for i in range(1, 31)),
            },
        ),
        pass_rates=tuple((i % 17) / 17 * (i % 5) / 4 for i in range(160)),
        groups=groups(before, after),
        examples=pick_examples(benchmark, before, after, each=2),
        benchmarks=(zero,),
        not_measured=(
            Unmeasured(
                name="mbpp",
                reason=(
                    "no file of it was given, and the hub is off: "
                    "`ratchet data add mbpp --path FILE` adds one"
                ),
            ),
        ),
        provenance=(
            Link(
                name="raw_problems",
                kind="datasets",
                content_hash="8b1f5ac02d7e" * 5,
                said="3328 problems, seed 1",
            ),
            Link(
                name="verified_problems",
                kind="datasets",
                content_hash="01ffe0c9ab41" * 5,
                made_from=("raw_problems",),
                said="3321 problems",
            ),
            Link(
                name="clean_problems",
                kind="datasets",
                content_hash="77d0e63c0b1a" * 5,
                made_from=("verified_problems",),
                said="3302 problems",
            ),
            Link(
                name="base_model",
                kind="checkpoints",
                content_hash="5ca1ab1e0000" * 5,
                made_from=("clean_problems",),
                said="862592 parameters",
            ),
            Link(
                name="sft_checkpoint",
                kind="checkpoints",
                content_hash="c0ffee123456" * 5,
                made_from=("clean_problems", "base_model"),
            ),
            Link(
                name="difficulty_rankings",
                kind="datasets",
                content_hash="d1ff00000000" * 5,
                made_from=("clean_problems", "sft_checkpoint"),
            ),
            Link(
                name="chain-0002",
                kind="checkpoints",
                content_hash="badc0de12345" * 5,
                made_from=("sft_checkpoint", "difficulty_rankings", "clean_problems", "reward"),
            ),
        ),
        environment=Environment(
            code_version="0.1.0+7eb143c1a2b3",
            packages={
                "verl": "0.9.1",
                "ray": "2.60.0",
                "torch": "2.13.0",
                "transformers": "5.10.4",
            },
            hardware={"cpu": "Intel Xeon", "cores": 2, "memory_gib": 23.4},
            isolation=before.isolation,
            seeds={"chain": 1, "training": 2},
        ),
        stages=(
            Minutes(stage="data", minutes=0.7),
            Minutes(stage="warm-up", minutes=1.1),
            Minutes(stage="training", minutes=5.4, note="30 steps"),
            Minutes(stage="scores", minutes=0.5),
            Minutes(stage="decision", minutes=0.1),
        ),
        spent=(
            Spending(what="training", seconds=324.2, tokens=881_010, note="30 steps"),
            Spending(what="heldout, challenger", seconds=11.5),
        ),
        price="No price is set (price_per_hour), so that none is shown.",
        peak_memory_gib=6.1,
        links={"W&B run, offline": "wandb/offline-run-20261121_031400-chain-0002"},
    )
    return made.model_copy(update=changes)


OLD = [i % 3 == 0 for i in range(120)]
NEW = [i % 3 == 0 or i % 4 == 1 for i in range(120)]
NEW[0] = NEW[3] = NEW[6] = False


@pytest.fixture(scope="module")
def promoted() -> ReportFacts:
    return facts_of(OLD, NEW)


def test_the_page_fetches_nothing_and_is_small(promoted: ReportFacts, tmp_path: Path) -> None:
    page = write_report(promoted, tmp_path / "report of a run").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:src|href)="([^"]{0,22})', page)) == {"data:image/png;base64,"}
    assert not re.search(r"@import|url\(|<script|https?://", page)
    assert len(page) < 400_000 and all(
        len(uri) < 80_000 for uri in re.findall(r"base64,([^\"]*)", page)
    )


def test_json_and_page_say_the_same(promoted: ReportFacts, tmp_path: Path) -> None:
    page = write_report(promoted, tmp_path).read_text(encoding="utf-8")
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["promoted"] is True and summary["p_value"] < 0.01
    assert summary["headline"] in page
    assert (
        ReportFacts.model_validate({key: summary[key] for key in ReportFacts.model_fields})
        == promoted
    )
    assert Decision.model_validate(summary["decision"]) == promoted.decision


def test_the_first_lines_say_what_the_model_is_and_how_it_was_warmed_up(
    promoted: ReportFacts,
) -> None:
    head = render(promoted).split("<section>")[0]
    assert "made from scratch" in head and "deliberate slips" in head


def test_what_was_not_measured_is_listed_with_the_reason_and_a_zero_with_its_interval(
    promoted: ReportFacts,
) -> None:
    page = render(promoted)
    assert "Not measured" in page and "no file of it was given" in page
    assert "(0 of 164; 0.0 to 2.3)" in page
    assert (
        "without the 3 tasks that resemble something in the training data" in page
        and "(0 of 161; 0.0 to 2.3)" in page
    )


def test_a_refused_challenger_has_its_report_too() -> None:
    page = render(facts_of(NEW, OLD))
    assert "Not promoted" in page and "Why it was not promoted" in page


def test_the_first_champion_has_its_report_and_no_comparison() -> None:
    page = render(facts_of(OLD, NEW, first=True))
    assert (
        "First champion" in page
        and "not an improvement shown" in page
        and "Champion against" not in page
    )


def test_a_report_of_little_is_written_all_the_same(promoted: ReportFacts) -> None:
    empty: dict[str, Any] = {
        "funnel": (),
        "curve": None,
        "pass_rates": (),
        "groups": (),
        "examples": (),
        "benchmarks": (),
        "not_measured": (),
    }
    page = render(
        promoted.model_copy(
            update=empty
            | {
                "provenance": (),
                "stages": (),
                "peak_memory_gib": None,
                "version": None,
                "links": {},
            }
        )
    )
    assert "Answers, side by side" not in page and "<img" not in page


def test_what_a_model_wrote_cannot_act_on_the_page(promoted: ReportFacts) -> None:
    hostile = promoted.examples[0].model_copy(
        update={"after": "<script>alert(1)</script>", "prompt": "<img src=x onerror=alert(1)>"}
    )
    page = render(promoted.model_copy(update={"examples": (hostile,)}))
    assert "<script" not in page and "<img src=x" not in page and "&lt;script&gt;" in page


def test_the_gain_stands_under_the_headline_with_its_interval(promoted: ReportFacts) -> None:
    head, compared = render(promoted).split("<section>")[0], promoted.decision.comparison
    assert (
        compared is not None and f"{100 * compared.difference:+.1f} points, 95 % interval" in head
    )
    assert "95 % interval" in render(facts_of(OLD, NEW, first=True)).split("<section>")[0]


def test_every_task_that_changed_is_named(promoted: ReportFacts) -> None:
    page, compared = render(promoted), promoted.decision.comparison
    assert (
        compared is not None
        and compared.lost
        and all(f"<code>{task}</code>" in page for task in (*compared.won, *compared.lost))
    )


def test_what_it_took_is_counted_or_said_not_to_be_and_no_price_is_made_up(
    promoted: ReportFacts,
) -> None:
    page = render(promoted)
    assert "881,010" in page and "not counted" in page and "No price is set" in page


def test_kl_and_its_like_are_drawn_where_they_were_measured(promoted: ReportFacts) -> None:
    assert ">KL</text>" in render(promoted)
    assert promoted.curve is not None
    assert "nats a token" not in render(
        promoted.model_copy(update={"curve": promoted.curve.model_copy(update={"figures": {}})})
    )


def test_the_provenance_is_drawn_with_a_box_for_each_artifact_and_a_curve_for_each_source(
    promoted: ReportFacts,
) -> None:
    root = ElementTree.fromstring(picture(promoted.provenance))
    boxes = [text.text for text in root.iter("text") if text.get("class") is None]
    known = {link.name for link in promoted.provenance}
    assert sorted(filter(None, boxes)) == sorted(known)
    assert len(list(root.iter("path"))) == sum(
        source in known for link in promoted.provenance for source in link.made_from
    )


def test_a_name_in_the_provenance_cannot_act_on_the_page_and_a_circle_is_drawn_all_the_same() -> (
    None
):
    odd = [
        Link(name="<script>", kind='"', content_hash="0" * 64, made_from=("b",)),
        Link(name="b", kind="x", content_hash="1" * 64, made_from=("<script>",)),
    ]
    drawn = picture(odd)
    assert "<script" not in drawn and len(list(ElementTree.fromstring(drawn).iter("rect"))) == 2


@pytest.mark.slow
def test_the_page_fits_a_phone_and_a_sheet_of_paper(promoted: ReportFacts, tmp_path: Path) -> None:
    page = write_report(promoted, tmp_path / "report")
    with Browser(tmp_path / "browser", width=420, height=900) as browser:
        browser.open(page.as_uri())
        assert browser.run("document.documentElement.scrollWidth") <= 420
        browser.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") >= 4


def test_examples_cover_won_lost_and_unsolved(promoted: ReportFacts) -> None:
    assert [e.outcome for e in promoted.examples] == ["won"] * 2 + ["lost"] * 2 + ["unsolved"] * 2


def test_only_a_shown_test_is_told(sandbox: Any, problems: list[Problem]) -> None:
    from evaluation.evaluate import judge_answers
    from evaluation.sampling import Answer

    wrong = Answer("```python\ndef solve(x):\n    return 'no'\n```", 5, False)
    hidden, shown = problems[0], replace(problems[1], visible_tests=1)
    samples, _ = judge_answers(heldout([hidden, shown]), [wrong, wrong], sandbox)
    told = {s.task_id: s.first_failed for s in samples}
    assert told[hidden.problem_id] == "" and told[shown.problem_id].startswith("assert solve(")


def test_changed_lines_are_marked_on_both_sides() -> None:
    old, new = changed_lines("a\nb\nc", "a\nB\nc\nd")
    assert old == [("a", False), ("b", True), ("c", False)]
    assert new == [("a", False), ("B", True), ("c", False), ("d", True)]
