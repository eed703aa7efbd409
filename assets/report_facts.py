"""The facts of a pipeline run's report, collected from its artifacts, scores and record."""

import json

from artifacts.fact_texts import fact_texts
from artifacts.manifest import Manifest
from artifacts.store import Artifact
from assets.contestant_scores import Scores, read_scores
from assets.contestants import benchmarks_of, start_of
from assets.pictures import REWARD
from assets.stages import STAGES, TABLE
from assets.verified_reward import unverified_by
from evaluation.promotion.gate import Decision
from evaluation.promotion.rate import Rate
from evaluation.reports.cost import Price, Usage
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
from evaluation.reports.figures import clean_rate
from evaluation.reports.report import groups, pick_examples
from problems.difficulty.difficulty import read_ranks
from problems.funnel import Stage
from resources.config.profile import Profile
from resources.cost import cost_line, run_cost
from resources.run_context import StageContext
from resources.run_record import RunRecord
from verl_jobs.job import VALIDATION
from verl_jobs.metrics.figures import seconds_trained, series

GATE = "heldout"
TOKENS = "perf/total_num_tokens"  # verl's metric: tokens of a training step


def report_facts(
    stage: StageContext, decision: Decision, version: int | None = None
) -> ReportFacts:
    """Return everything that the report shows. version: the challenger's, once it is recorded."""
    record, profile, store = stage.pipeline_run.record, stage.profile, stage.store
    scores = read_scores(store.require("scores", record.id))
    challenger = store.require("checkpoints", record.id)
    benchmarks, not_measured = benchmarks_of(stage)
    before = scores.champion[profile.policy.benchmark]
    after = scores.challenger[profile.policy.benchmark]
    gated = next(each for each in benchmarks if each.name == profile.policy.benchmark)
    ranking = store.require("datasets", "difficulty_rankings")
    return ReportFacts(
        run_id=record.id,
        profile=record.profile,
        created_at=record.opened_at,
        model=_model(stage, challenger),
        decision=decision,
        version=version,
        before_name=_before_name(stage),
        funnel=_funnel(stage),
        curve=_curve(challenger, len(scores.challenger["validation"].solved))
        if "validation" in scores.challenger
        else None,
        pass_rates=tuple(row.pass_rate for row in read_ranks(ranking.path / "ranks.parquet")),
        groups=groups(before, after),
        examples=pick_examples(gated, before, after),
        benchmarks=tuple(
            _benchmark(each.name, each.conventions, scores, profile.base) for each in benchmarks
        ),
        not_measured=tuple(
            Unmeasured(name=name, reason=reason) for name, reason in not_measured.items()
        ),
        provenance=_provenance(stage, challenger.manifest),
        environment=_environment(stage, challenger.manifest, after.isolation),
        stages=_minutes(record),
        minutes=round(record.took_minutes, 2),
        effort=_effort(challenger, scores, profile.price_per_hour),
        price=cost_line(run_cost(stage.run_context.as_settings, record)),
        peak_memory_gib=record.peak_pss_gib or None,
        links={
            "MLflow": str(stage.run_context.home.path / "mlflow.db"),
            "trainer's folder": str(stage.pipeline_run.folder / "training"),
        },
    )


def _before_name(stage: StageContext) -> str:
    if stage.pipeline_run.record.champion:
        return "champion"
    warm_up = stage.store.require("checkpoints", "sft_checkpoint").manifest.facts
    return "warmed-up model" if warm_up["demonstrations"] else "base model"


def _environment(stage: StageContext, manifest: Manifest, isolation: str) -> Environment:
    profile = stage.profile
    return Environment(
        code_version=manifest.code_version,
        packages=manifest.packages,
        hardware=manifest.hardware,
        isolation=isolation,
        seeds={
            **(
                {}
                if profile.base
                else {"family": profile.family.seed, "base model": profile.tiny_model.seed}
            ),
            "warm-up": profile.warm_up.seed,
            "training": stage.pipeline_run.record.seed,
        },
    )


def _minutes(record: RunRecord) -> tuple[Minutes, ...]:
    return tuple(
        Minutes(stage=name, minutes=timing.seconds / 60, note="found" if timing.reused else "")
        for name, timing in record.stages.items()
    )


def _model(stage: StageContext, challenger: Artifact) -> Model:
    profile, facts = stage.profile, challenger.manifest.facts
    base = stage.store.require("checkpoints", "base_model").manifest.facts
    warm_up_facts = stage.store.require("checkpoints", "sft_checkpoint").manifest.facts
    warm_up = _warm_up(profile, warm_up_facts["demonstrations"])
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


def _warm_up(profile: Profile, demonstrations: int) -> str:
    if not demonstrations:
        return "No supervised training: reinforcement learning starts from the base model."
    taught = f"Supervised on {demonstrations} demonstrations in {profile.warm_up.steps} steps."
    if profile.base:
        return f"{taught} They are verified solutions."
    return (
        f"{taught} Their simulated author makes mistakes on purpose: "
        f"{100 * profile.family.slip_rate:.0f} % of the error-prone operations are wrong, as in "
        "code from the web."
    )


def _stored(stage: StageContext) -> list[Artifact]:
    """Return what the run trained with: its datasets, and the models before its own. The datasets
    before the clean problems are absent if they are fetched.
    """
    stages = [each for each in TABLE if each.kind in ("datasets", "checkpoints")]
    if stage.profile.dataset:
        stages = stages[stages.index(STAGES["clean_problems"]) :]
    return [
        stage.store.require(each.kind, each.name) for each in stages if each.name != "checkpoint"
    ]


def _funnel(stage: StageContext) -> tuple[FunnelStep, ...]:
    steps = []
    for artifact in _stored(stage):
        manifest = artifact.manifest
        if manifest.name in STAGES and STAGES[manifest.name].removes:
            name = manifest.name.removesuffix("_problems")
            counts = Stage.of(name, manifest.facts)
            removed = {} if name == "raw" else dict(counts.reasons)
            steps.append(
                FunnelStep(
                    stage=name,
                    problems=counts.went_out,
                    content_hash=artifact.content_hash,
                    removed=removed,
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
            ScoreFact(step=step, benchmark="validation", rate=Rate.counted(count, tasks))
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
            note="prompts and completions",
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


def _benchmark(name: str, conventions: str, scores: Scores, base: str) -> BenchmarkScore:
    champion, challenger = scores.champion.get(name), scores.challenger.get(name)
    card = challenger or champion
    clean = {
        side: clean_rate(scored, scores.suspects)
        for side, scored in (("champion", champion), ("challenger", challenger))
        if scored
    }
    small = (
        "a model of this size, trained on one small family of problems, is too small for it"
        if name not in (GATE, "validation") and not base
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
    manifests = [challenger, *(artifact.manifest for artifact in _stored(stage))]
    names = {manifest.content_hash: manifest.name for manifest in manifests}
    # By name: two empty artifacts have the same content.
    own_names = {manifest.name for manifest in manifests}
    return tuple(
        Link(
            name=manifest.name,
            kind=manifest.kind,
            content_hash=manifest.content_hash,
            made_from=tuple(
                name if name in own_names else names.get(content, name)
                for name, content in manifest.inputs.items()
            ),
            details=", ".join(fact_texts(manifest.facts)[:3]),
        )
        for manifest in manifests
    )
