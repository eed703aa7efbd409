"""The report: one self-contained HTML file to share, and the same facts in summary.json."""

import json
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.manifest import Manifest
from artifacts.store import Artifact
from assets.contestant_scores import Scores, benchmarks_of, contestant_scores, read_scores
from assets.difficulty_rankings import start_of
from assets.gate_facts import facts_of
from assets.leaderboard import leaderboard
from assets.partitions import EVALUATION, OWNERS, checkpoints
from assets.pictures import REWARD
from assets.tables import markdown
from assets.verified_problems import stored_stage
from assets.verified_reward import unverified_by
from evaluation.promotion.gate import Decision, Rate, decide
from evaluation.reports.cost import Price, Usage
from evaluation.reports.facts import (
    BenchmarkScore,
    Curve,
    Effort,
    Environment,
    Link,
    Minutes,
    Model,
    ReportFacts,
    Score,
    Step,
    Unmeasured,
)
from evaluation.reports.figures import clean_rate
from evaluation.reports.report import groups, pick_examples, write_report
from problems.difficulty.difficulty import read_ranks
from resources.config.load import ProfileError
from resources.run_context import RunContext, StageContext
from verl_jobs.job import VALIDATION
from verl_jobs.metrics.figures import seconds_trained, series

GATE = "heldout"
TOKENS = "perf/total_num_tokens"  # verl's metric: tokens of a training step
DATASETS = (
    "raw_problems",
    "verified_problems",
    "augmented_problems",
    "synthetic_problems",
    "clean_problems",
    "difficulty_rankings",
    "training_rows",
)
MODELS = ("base_model", "sft_checkpoint")


@dg.asset(
    group_name=EVALUATION,
    kinds={"html"},
    owners=OWNERS[EVALUATION],
    deps=[contestant_scores, leaderboard],
    partitions_def=checkpoints,
)
def training_report(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """One HTML page: data, training curves, scores before and after, examples, the decision's
    reasons, provenance, and missing measurements.
    """
    with run_context.stage(context, trains=False) as stage:
        decision = decision_of(
            read_scores(stage.store.require("scores", stage.pipeline_run.record.id)), stage
        )
        page = report(stage, decision)
        stage.report.created += 1
        stage.report.say(str(page))
    metadata = {
        "report": dg.MetadataValue.path(str(page)),
        "reasons": dg.MetadataValue.md("\n".join(f"- {reason}" for reason in decision.reasons)),
    }
    metadata |= _figures(json.loads((page.parent / "summary.json").read_text(encoding="utf-8")))
    return dg.MaterializeResult(
        metadata=metadata, data_version=dg.DataVersion(decision.content_hash)
    )


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the report's summary for the asset's page: outcome, each benchmark, time and memory,
    what was not measured.
    """
    rows = [
        (
            row["name"],
            *(_score_text(row, side) for side in ("champion", "challenger")),
            "" if row["left_out"] is None else row["left_out"],
        )
        for row in summary["benchmarks"]
    ]
    scores = markdown(("benchmark", "champion", "challenger", "suspect tasks"), rows)
    spent = [
        (
            row["what"],
            *(
                "not counted" if row[key] is None else f"{row[key]:,.0f}"
                for key in ("seconds", "tokens")
            ),
        )
        for row in summary["spent"]
    ]
    compared = summary["decision"]["comparison"] or {"won": (), "lost": ()}
    return {
        "headline": summary["headline"],
        "gain": summary["gain"],
        "tasks_won": len(compared["won"]),
        "tasks_lost": len(compared["lost"]),
        "benchmarks": dg.MetadataValue.md(scores),
        "spent": dg.MetadataValue.md(markdown(("what", "seconds", "tokens"), spent)),
        "minutes": summary["minutes"],
        "not_measured": dg.MetadataValue.json(
            {row["name"]: row["reason"] for row in summary["not_measured"]}
        ),
    }


def _score_text(row: dict[str, Any], side: str) -> str:
    """Return a benchmark's score as text; with suspect tasks, also the score without them."""
    if row[side] is None:
        return "not measured"
    clean = row[f"{side}_clean"]
    return f"{100 * row[side]['share']:.1f} %" + (
        f", clean {100 * clean['share']:.1f} %" if row["left_out"] and clean else ""
    )


def decision_of(scores: Scores, stage: StageContext) -> Decision:
    """Build the report from the scorecards, the recorded facts and the policy. It is a pure
    function, so report and gate agree.
    """
    policy = stage.profile.policy
    if policy.benchmark not in scores.challenger or policy.benchmark not in scores.champion:
        reason = scores.not_measured.get(
            policy.benchmark, f"only {', '.join(scores.challenger)} were run"
        )
        raise ProfileError(f"policy.benchmark: {policy.benchmark} has no scores: {reason}")
    both = [
        name
        for name in scores.challenger
        if name not in (policy.benchmark, "validation") and name in scores.champion
    ]
    others = [(scores.champion[name], scores.challenger[name]) for name in both]
    gated = scores.challenger[policy.benchmark]
    facts = facts_of(stage, gated, scores.challenger.values())
    return decide(scores.champion[policy.benchmark], gated, policy, others, facts)


def report(stage: StageContext, decision: Decision, version: int | None = None) -> Path:
    """Write the pipeline run's report atomically, and return the page's path."""
    record, profile, store = stage.pipeline_run.record, stage.profile, stage.store
    scores = read_scores(store.require("scores", record.id))
    challenger = store.require("checkpoints", record.id)
    benchmarks, not_measured = benchmarks_of(stage)
    before, after = (
        scores.champion[profile.policy.benchmark],
        scores.challenger[profile.policy.benchmark],
    )
    gated = next(
        benchmark for benchmark in benchmarks if benchmark.name == profile.policy.benchmark
    )
    manifest = challenger.manifest
    facts = ReportFacts(
        chain=record.id,
        profile=record.profile,
        created_at=record.opened_at,
        model=_model(stage, challenger),
        decision=decision,
        version=version,
        before_name="champion" if record.champion else "warmed-up model",
        funnel=_funnel(stage),
        curve=_curve(challenger, len(scores.challenger["validation"].solved))
        if "validation" in scores.challenger
        else None,
        pass_rates=tuple(
            row.pass_rate
            for row in read_ranks(
                store.require("datasets", "difficulty_rankings").path / "ranks.parquet"
            )
        ),
        groups=groups(before, after),
        examples=pick_examples(gated, before, after),
        benchmarks=tuple(_benchmark(each.name, each.conventions, scores) for each in benchmarks),
        not_measured=tuple(
            Unmeasured(name=name, reason=reason) for name, reason in not_measured.items()
        ),
        provenance=_provenance(stage, manifest),
        environment=Environment(
            code_version=manifest.code_version,
            packages=manifest.packages,
            hardware=manifest.hardware,
            isolation=after.isolation,
            seeds={
                "family": profile.family.seed,
                "base model": profile.tiny_model.seed,
                "warm-up": profile.warm_up.seed,
                "training": record.seed,
            },
        ),
        stages=tuple(
            Minutes(stage=name, minutes=t.seconds / 60, note="found" if t.reused else "")
            for name, t in record.stages.items()
        ),
        effort=_effort(challenger, scores, profile.price_per_hour),
        price=_price(
            sum(timing.seconds for timing in record.stages.values()) / 3600, profile.price_per_hour
        ),
        peak_memory_gib=record.peak_pss_gib or None,
        links={
            "MLflow": str(stage.run_context.home.path / "mlflow.db"),
            "trainer's folder": str(stage.pipeline_run.folder / "training"),
        },
    )
    return write_report(facts, stage.run_context.home.reports / record.id)


def _model(stage: StageContext, challenger: Artifact) -> Model:
    profile, facts = stage.profile, challenger.manifest.facts
    base = stage.store.require("checkpoints", "base_model").manifest.facts
    warm_up_facts = stage.store.require("checkpoints", "sft_checkpoint").manifest.facts
    warm_up = (
        f"Supervised on {warm_up_facts['demonstrations']} demonstrations in "
        f"{profile.warm_up.steps} steps. Their simulated author makes mistakes on purpose: "
        f"{100 * profile.family.slip_rate:.0f} % of the error-prone operations are wrong, as in "
        "code from the web."
    )
    training = (
        f"{profile.training.algorithm.upper()} by verl, {facts['steps']} steps from "
        f"{start_of(stage).checkpoint}, with rewards from the tests. Step {facts['step']} is the "
        "best on validation and was kept."
    )
    if timed := facts.get("timed"):
        training += (
            f" Its reward has components that measure time ({', '.join(timed)}): a repeated "
            "training may give other weights."
        )
    if unverified := unverified_by(challenger.manifest):
        training += (
            f" UNVERIFIED: {', '.join(unverified)} trained with a reward that had not passed the "
            "exploit battery."
        )
    settings = profile.training.model_dump(
        include={
            "algorithm",
            "steps",
            "problems_per_step",
            "group_size",
            "learning_rate",
            "temperature",
        }
    )
    architecture = profile.base or "Qwen2 architecture, built from scratch with its own tokenizer"
    return Model(
        architecture=architecture,
        parameters=base.get("parameters", 0),
        warm_up=warm_up,
        training=training,
        settings=settings,
    )


def _funnel(stage: StageContext) -> tuple[Step, ...]:
    raw = stage.store.require("datasets", "raw_problems")
    steps = [
        Step(stage="raw", problems=raw.manifest.facts["problems"], content_hash=raw.content_hash)
    ]
    for name in ("verified_problems", "augmented_problems", "synthetic_problems", "clean_problems"):
        artifact = stage.store.require("datasets", name)
        funnel_stage = stored_stage(artifact.path, name)
        steps.append(
            Step(
                stage=name.removesuffix("_problems"),
                problems=funnel_stage.went_out,
                content_hash=artifact.content_hash,
                removed=dict(funnel_stage.reasons),
            )
        )
    return tuple(steps)


def _curve(challenger: Artifact, tasks: int) -> Curve:
    history = json.loads((challenger.path / "measured.json").read_text(encoding="utf-8"))
    rewards = tuple(
        (int(record["step"]), float(record[REWARD])) for record in history if REWARD in record
    )
    solved = [
        (int(record["step"]), round(record[VALIDATION] * tasks))
        for record in history
        if VALIDATION in record
    ]
    figures = {name: tuple(series(history, name)) for name in ("KL", "entropy", "length", "cut")}
    measured = {name: points for name, points in figures.items() if points}
    return Curve(
        rewards=rewards,
        figures=measured,
        scores=tuple(
            Score(step=step, benchmark="validation", rate=Rate.counted(count, tasks))
            for step, count in solved
        ),
    )


def _effort(challenger: Artifact, scores: Scores, price_per_hour: float) -> tuple[Effort, ...]:
    """Return the training's time and tokens by verl's own clock, then those of each score. For a
    score that existed already, the figures are of its first evaluation.
    """
    history = json.loads((challenger.path / "measured.json").read_text(encoding="utf-8"))
    token_counts = [float(row[TOKENS]) for row in history if row.get(TOKENS) is not None]
    rows = [
        Effort(
            what="training",
            seconds=seconds_trained(history),
            tokens=sum(token_counts) if token_counts else None,
            note="prompts and answers",
        )
    ]
    for side, cards in (("challenger", scores.challenger), ("champion", scores.champion)):
        for name, card in cards.items():
            usage = Usage.of(card)
            note = f"a solved problem: {usage.per_solved_problem(Price(hour=price_per_hour))}"
            rows.append(
                Effort(
                    what=f"{name}, {side}",
                    seconds=usage.seconds or None,
                    tokens=usage.tokens or None,
                    note=note,
                )
            )
    return tuple(rows)


def _price(hours: float, price_per_hour: float) -> str:
    if not price_per_hour:
        return "No price: price_per_hour of the profile is not set."
    return (
        f"{hours * price_per_hour:.2f} for {hours:.2f} hours of all stages, at {price_per_hour:g} "
        "an hour (price_per_hour of the profile)."
    )


def _benchmark(name: str, conventions: str, scores: Scores) -> BenchmarkScore:
    champion, challenger = scores.champion.get(name), scores.challenger.get(name)
    card = challenger or champion
    clean = {
        side: clean_rate(scored, scores.suspects)
        for side, scored in (("champion", champion), ("challenger", challenger))
        if scored
    }
    small = (
        "a model of this size, trained on one small family of problems, is too small for it"
        if name not in (GATE, "validation")
        else ""
    )
    return BenchmarkScore(
        name=name,
        version=card.benchmark_version if card else "",
        conventions=conventions,
        champion=Rate.of(champion) if champion else None,
        challenger=Rate.of(challenger) if challenger else None,
        left_out=next((clean_score[1] for clean_score in clean.values() if clean_score), None),
        champion_clean=clean_score[0] if (clean_score := clean.get("champion")) else None,
        challenger_clean=clean_score[0] if (clean_score := clean.get("challenger")) else None,
        note=small if card and card.pass_at_1 == 0 else "",
    )


def _provenance(stage: StageContext, challenger: Manifest) -> tuple[Link, ...]:
    keys = [*(("datasets", name) for name in DATASETS), *(("checkpoints", name) for name in MODELS)]
    manifests = [challenger, *(stage.store.require(kind, name).manifest for kind, name in keys)]
    names = {manifest.content_hash: manifest.name for manifest in manifests}
    # By name: two empty artifacts have the same content.
    own_names = set(names.values()) | {name for _, name in keys}
    return tuple(
        Link(
            name=manifest.name,
            kind=manifest.kind,
            content_hash=manifest.content_hash,
            made_from=tuple(
                name if name in own_names else names.get(content, name)
                for name, content in manifest.inputs.items()
            ),
            details=", ".join(
                f"{name} {value}"
                for name, value in list(manifest.facts.items())[:3]
                if isinstance(value, int | float | str)
            ),
        )
        for manifest in manifests
    )
