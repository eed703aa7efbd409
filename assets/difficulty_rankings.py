"""Difficulty of problems for the start policy, measured on a sample of them.

In: clean problems and the start policy. Out: a ranking by the pass rate of several completions per
problem.
"""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.store import Artifact
from assets.contestants import start_of
from assets.generation import Generation, engine_of
from assets.markdown import markdown
from assets.pictures import difficulty_picture
from assets.stages import STAGES, asset_of
from assets.verified_reward import CONTROL, store_result
from evaluation.generation.completion_sources import complete
from evaluation.generation.requests import GenerationRequest
from evaluation.sampling import Prompt, Sampling
from problems.dataset.balance import weigh, write_weights
from problems.dataset.card import FEATURES, WEIGHTS
from problems.dataset.trainable import explained, trainable, untrained
from problems.difficulty.difficulty import PassRateRank, rank, read_ranks, write_ranks
from problems.difficulty.features import read_difficulty, spearman
from problems.prompt import prompt_messages
from problems.schema import Problem
from problems.stored import stored_problems
from resources.model_version import ModelVersion
from resources.run_context import RunContext, StageContext, StageOutput, result
from rewards.battery.battery import run_battery
from rewards.composite import score_answers
from rewards.own import reward_of
from rewards.question import RewardTask


@dg.asset(
    **asset_of("difficulty_rankings"),
    kinds={"huggingface", "parquet"},
)
def difficulty_rankings(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Pass rates of a sample of training problems under the policy that training starts from: the
    champion, or the warmed-up model.
    """
    with run_context.stage(context) as stage:
        clean, start = stage.store.require("datasets", "clean_problems"), start_of(stage)
        artifact = rank_problems(stage, clean, start)
        ranks = read_ranks(artifact.path / "ranks.parquet")
        stage.report.say(
            f"mean pass rate {100 * artifact.manifest.facts['mean_pass_rate']:.0f} %, "
            f"{sum(row.pass_rate == 0 for row in ranks)} never solved"
        )
    metadata = {"policy": start.checkpoint} | _metadata(artifact, ranks, clean)
    return result(artifact, metadata)


def rank_problems(stage: StageContext, clean: Artifact, start: ModelVersion) -> Artifact:
    """Return the artifact with the ranking of a sample, and with weights of all problems."""
    profile = stage.profile

    def make(folder: Path) -> StageOutput:
        problems = stored_problems(clean.path)
        candidates = trainable(problems, profile.base)
        sampled = sample(candidates, profile.ranking.problems, profile.seed)
        outcomes = _outcomes(stage, Path(start.path), sampled)
        ranks = rank(
            outcomes,
            {problem.problem_id: problem.content_hash for problem in sampled},
            start.content_hash,
        )
        write_ranks(ranks, folder / "ranks.parquet")
        rates = {row.problem_id: row.pass_rate for row in ranks}
        weights = weigh(candidates, read_difficulty(clean.path / FEATURES), rates)
        write_weights(weights, folder / WEIGHTS)
        facts = {
            "policy": start.checkpoint,
            "problems": len(ranks),
            "mean_pass_rate": sum(rates.values()) / len(ranks),
            "not_trained_on": len(untrained(problems, profile.base)),
        }
        return StageOutput(facts)

    config = profile.ranking.model_dump(mode="json") | {
        "max_new_tokens": profile.training.answer_tokens,
        "base": profile.base,
        **engine_of(profile),
    }
    return stage.artifact(
        STAGES["difficulty_rankings"],
        make,
        inputs={"clean_problems": clean.content_hash, "policy": start.content_hash},
        config=config,
        seed=profile.seed,
    )


def _metadata(artifact: Artifact, ranks: Sequence[PassRateRank], clean: Artifact) -> dict[str, Any]:
    facts, middle = artifact.manifest.facts, len(ranks) // 2
    examples = [*ranks[:3], *ranks[middle : middle + 3], *ranks[-3:]]
    return {
        "dagster/row_count": len(ranks),
        "mean_pass_rate": facts["mean_pass_rate"],
        "not_trained_on": explained(facts["not_trained_on"]),
        "pass_rates": dg.MetadataValue.md(difficulty_picture(ranks)),
        "static_difficulty_agrees": dg.MetadataValue.md(
            agreement(ranks, read_difficulty(clean.path / FEATURES))
        ),
        "from_easy_to_hard": dg.MetadataValue.md(
            markdown(
                ("problem", "passed", "interval"),
                [
                    (
                        row.problem_id,
                        f"{row.passed} of {row.n}",
                        f"{row.low:.2f} to {row.high:.2f}",
                    )
                    for row in examples
                ],
            )
        ),
    }


@dg.asset_check(asset=difficulty_rankings, blocking=True)
def reward_battery(run_context: RunContext) -> dg.AssetCheckResult:
    """The reward scores known completions as expected: right, wrong, empty, exploits."""
    config = run_context.profile.reward
    if config.kind == "random":  # a control experiment whose reward does not depend on the program
        return dg.AssetCheckResult(passed=True, metadata={"reward": CONTROL})
    with run_context.new_sandbox() as sandbox:
        battery = run_battery(reward_of(config), sandbox)
    store_result(run_context.home, config, battery)
    rows = markdown(
        ("property", "holds", "observed"),
        [(row.name, "yes" if row.passed else "NO", row.seen) for row in battery.rows],
    )
    metadata: dict[str, Any] = {
        "battery": dg.MetadataValue.md(rows),
        "hash": battery.hash,
        "speed": battery.speed,
        "unverified": config.unverified,
    }
    if exploits := [
        f"{row.name}\n\n```\n{row.exploit}\n```"
        for row in sorted(battery.rows, key=lambda row: len(row.exploit))
        if row.exploit
    ]:
        metadata["exploits"] = dg.MetadataValue.md("\n\n".join(exploits[:5]))
    failed = [row.name for row in battery.rows if not row.passed]
    reason = (
        f"the reward has not passed the exploit battery ({len(failed)} of {len(battery.rows)} "
        f"failed: {'; '.join(failed[:3])}): run `ratchet reward verify`, "
    )
    return dg.AssetCheckResult(
        passed=battery.passed or config.unverified,
        severity=_severity(config.unverified),
        metadata=metadata,
        description=reason + "or train with --unverified" if failed else None,
    )


def _severity(unverified: bool) -> dg.AssetCheckSeverity:
    return dg.AssetCheckSeverity.WARN if unverified else dg.AssetCheckSeverity.ERROR


def agreement(ranks: Sequence[PassRateRank], static: Mapping[str, float]) -> str:
    """Return in words how well the static score predicts the model's failures."""
    correlation = spearman(
        [static[row.problem_id] for row in ranks], [1 - row.pass_rate for row in ranks]
    )
    return (
        f"Spearman {correlation:+.2f} over {len(ranks)} problems"
        if correlation is not None
        else f"no correlation over {len(ranks)} problems: all values are equal"
    )


def sample(problems: list[Problem], count: int, seed: int) -> list[Problem]:
    """Return `count` of the problems, always the same for a seed."""
    return random.Random(seed).sample(problems, min(count, len(problems)))


def _outcomes(
    stage: StageContext, checkpoint: Path, problems: list[Problem]
) -> dict[str, list[bool]]:
    """Return whether each judged completion passed; those without a verdict are left out."""
    config, progress = stage.profile.ranking, stage.report.progress
    sampling = Sampling(
        n=config.answers,
        temperature=config.temperature,
        max_new_tokens=stage.profile.training.answer_tokens,
        seed=stage.profile.seed,
    )
    chats: list[Prompt] = [prompt_messages(problem) for problem in problems]
    request = GenerationRequest(
        checkpoint=checkpoint, form="chat", prompts=tuple(chats), sampling=sampling
    )
    generation = Generation(stage, lambda: [request])
    completions = complete(
        chats,
        generation.source(checkpoint, "chat"),
        sampling,
        generation.cache,
        lambda done, total: progress.at(done, total, "completions"),
    )
    pairs: list[tuple[RewardTask, str]] = [
        (problem, completions[i * config.answers + k].text)
        for i, problem in enumerate(problems)
        for k in range(config.answers)
    ]
    with stage.run_context.new_sandbox() as sandbox:
        scores = score_answers(sandbox, reward_of(stage.profile.reward), pairs)
    outcomes: dict[str, list[bool]] = {}
    for (problem, _), score in zip(pairs, scores, strict=True):
        if score.value is not None:
            outcomes.setdefault(problem.problem_id, []).append(score.solved)
    return outcomes
