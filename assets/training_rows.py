"""The problems of a training as verl reads them.

In: clean problems and their ranking. Out: an artifact with `train.parquet`, `validation.parquet`
and, if the training selects problems, their expected pass rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artifacts.hashing import hash_data
from artifacts.store import Artifact
from assets.stages import STAGES
from evaluation.benchmarks.embedded import answering, validation
from evaluation.benchmarks.validation_parquet import write_validation
from problems.dataset.balance import read_weights
from problems.dataset.card import WEIGHTS
from problems.dataset.rl_parquet import write_verl
from problems.dataset.trainable import trainable, untrained
from problems.difficulty.boost import boosted
from problems.difficulty.difficulty import PassRateRank, read_ranks
from problems.difficulty.pass_rate_prior import FILE, expect, write_expected
from problems.production import capped
from problems.schema import Problem
from problems.stored import stored_problems
from resources.home import NotReady
from resources.preflight import check_agents
from resources.registry.regressions import RegressionSet
from resources.run_context import StageContext, StageOutput
from rewards.components.efficiency import with_costs
from verl_jobs.config.training import Training


def training_rows(stage: StageContext) -> Artifact:
    """Return the artifact with training and validation problems.

    Problems that the policy always solves are left out, because they teach it nothing.
    Raises NotReady if conversations are on and no problem supports them.
    """
    profile = stage.profile
    clean = stage.store.require("datasets", "clean_problems")
    ranking = stage.store.require("datasets", "difficulty_rankings")
    selects = training_of(stage).selects_problems
    lost = regression_problems(stage) if selects else []
    check_agents(profile.training.agents)
    if profile.training.agents.turns > 1:
        check_conversations(stored_problems(clean.path))

    if profile.reward.by:
        profile.reward.check_tags(stored_problems(clean.path))

    def make(folder: Path) -> StageOutput:
        problems = stored_problems(clean.path)
        ranks = read_ranks(ranking.path / "ranks.parquet")
        easy = {row.problem_id for row in ranks if row.passed == row.n}
        harder = [
            problem
            for problem in trainable(problems, profile.base)
            if problem.problem_id not in easy
        ]
        train = capped(harder, profile.production.share)
        over_share = len(harder) - len(train)
        validation_problems = validation(problems, answering(profile.training.answer_tokens))
        if profile.reward.timed:
            with stage.run_context.new_sandbox() as sandbox:
                train = with_costs(sandbox, train)
        write_verl(train, folder / "train.parquet")
        write_validation(validation_problems, folder / "validation.parquet")
        if selects:
            # The ranking's weights include measured pass rates and take precedence.
            _write_expected(folder, train, ranks, lost, [ranking, clean])
        facts = {
            "train": len(train),
            "validation": len(validation_problems.problems),
            "left_out_as_solved": len(easy),
            "left_out_over_production_share": over_share,
            "not_trained_on": len(untrained(problems, profile.base)),
        }
        return StageOutput(facts)

    inputs = {"clean_problems": clean.content_hash, "difficulty_rankings": ranking.content_hash}
    config = (
        {"base": profile.base}
        | ({"measured": list(profile.reward.timed)} if profile.reward.timed else {})
        | ({"expected": True} if selects else {})
        | profile.production.model_dump(include={"share"}, exclude_defaults=True)
    )
    if lost:
        inputs["regressions"] = hash_data(sorted(problem.content_hash for problem in lost))
    return stage.artifact(STAGES["training_rows"], make, inputs=inputs, config=config)


def _write_expected(
    folder: Path,
    train: Sequence[Problem],
    ranks: Sequence[PassRateRank],
    lost: Sequence[Problem],
    weighted: Sequence[Artifact],
) -> None:
    """Write the expected pass rate and weight of each problem.

    weighted: the first of these artifacts that has weights provides them.
    """
    paths = [artifact.path / WEIGHTS for artifact in weighted]
    path = next((path for path in paths if path.exists()), None)
    weights = {row.problem_id: row.weight for row in read_weights(path)} if path else {}
    if lost:
        weights = boosted(weights, train, lost)
    write_expected(expect(train, ranks, weights), folder / FILE)


def training_of(stage: StageContext) -> Training:
    """Return the profile's training section, with weights after a regression.

    If a regression of the champion started this run, problems similar to the lost tasks get a
    higher weight. A curriculum or sampler of the profile stays, and the curriculum uses the
    weights.
    """
    training = stage.profile.training
    if training.selects_problems or not regression_problems(stage):
        return training
    return training.model_copy(
        update={"curriculum": training.curriculum.model_copy(update={"schedule": "weighted"})}
    )


def regression_problems(stage: StageContext) -> list[Problem]:
    """Return the tasks that champions have lost, if a regression started this run; else none."""
    record = stage.pipeline_run.record
    if not record.regression:
        return []
    regressions = RegressionSet(stage.run_context.home.regressions).read(record.number)
    return [task.as_problem() for task in regressions]


def check_conversations(problems: Sequence[Problem]) -> None:
    """Raise NotReady if no problem has a visible test, which is what the Executor reports."""
    if not any(problem.visible_tests for problem in problems if problem.split == "train"):
        raise NotReady(
            "training.agents: no training problem has a visible test, which conversations need: "
            "add some, or --set family.visible_tests=2 --set training.prompt_tokens=160"
        )
