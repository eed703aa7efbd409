"""Facts for tests of the report: a pipeline run with every part that a report can show."""

from __future__ import annotations

from typing import Any

from evaluation.benchmarks import Benchmark, heldout
from evaluation.promotion.gate import decide
from evaluation.promotion.rate import Rate
from evaluation.reports.facts import (
    BenchmarkScore,
    Curve,
    Effort,
    Environment,
    FunnelStep,
    Link,
    Minutes,
    Model,
    ReportFacts,
    ScoreFact,
    Unmeasured,
)
from evaluation.reports.report import groups, pick_examples
from evaluation.scorecard import Scorecard
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from tests.evaluation.scorecards import sample, scorecard


def card(name: str, benchmark: Benchmark, solves: list[bool]) -> Scorecard:
    wrong = "def solve(x):\n    x = sorted(x)\n    return x[::-1]"
    samples = (
        sample(
            problem.problem_id,
            solved,
            program=problem.solutions[0] if solved else wrong,
            passed=10 if solved else 3,
            total=10,
            tags=problem.tags,
        )
        for problem, solved in zip(benchmark.problems, solves, strict=True)
    )
    return scorecard(
        name,
        samples,
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        isolation="root: namespaces+uid+seccomp+rlimits+cgroup",
    )


def facts_of(old: list[bool], new: list[bool], first: bool = False, **changes: Any) -> ReportFacts:
    benchmark = heldout(heldout_tasks(FamilyConfig(), 0, len(old)))
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
    facts = ReportFacts(
        run_id="chain-0002",
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
            FunnelStep(stage="raw problems", problems=3328, content_hash="8b1f5ac02d7e" * 5),
            FunnelStep(
                stage="verified problems",
                problems=3321,
                content_hash="01ffe0c9ab41" * 5,
                removed={"fail their tests": 4, "too weak": 3},
            ),
            FunnelStep(
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
                ScoreFact(step=s, benchmark="validation", rate=Rate.counted(n, 128))
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
                details="3328 problems, seed 1",
            ),
            Link(
                name="verified_problems",
                kind="datasets",
                content_hash="01ffe0c9ab41" * 5,
                made_from=("raw_problems",),
                details="3321 problems",
            ),
            Link(
                name="clean_problems",
                kind="datasets",
                content_hash="77d0e63c0b1a" * 5,
                made_from=("verified_problems",),
                details="3302 problems",
            ),
            Link(
                name="base_model",
                kind="checkpoints",
                content_hash="5ca1ab1e0000" * 5,
                made_from=("clean_problems",),
                details="862592 parameters",
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
            seeds={"pipeline run": 1, "training": 2},
        ),
        minutes=7.9,
        stages=(
            Minutes(stage="data", minutes=0.7),
            Minutes(stage="warm-up", minutes=1.1),
            Minutes(stage="training", minutes=5.4, note="30 steps"),
            Minutes(stage="scores", minutes=0.5),
            Minutes(stage="decision", minutes=0.1),
        ),
        effort=(
            Effort(what="training", seconds=324.2, tokens=881_010, note="30 steps"),
            Effort(what="heldout, challenger", seconds=11.5),
        ),
        price="No price is set (price_per_hour), so that none is shown.",
        peak_memory_gib=6.1,
        links={"W&B run, offline": "wandb/offline-run-20261121_031400-chain-0002"},
    )
    return facts.model_copy(update=changes)
