"""`ratchet ablate`: repeat a training with one setting changed at a time and report its effect.

Every run has the baseline's start, problems, seeds and number of steps. All are scored on one
held-out draw that no gate uses. A repeated command skips runs that have ended.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optuna.trial import Trial
from rich.console import Console

from artifacts.hashing import hash_folder
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.promotion.rate import points
from evaluation.reports.ablation import Contribution, contribution
from evaluation.scorecard import Scorecard
from experiments.ablation_results import report, show
from experiments.loop import CellFailed, RunningCell
from experiments.study import Study, StudyResult, run_study
from experiments.training import training, trainings_at_once
from resources.config.load import ProfileError
from resources.config.profile import Profile
from resources.plugin_check import check_plugins
from resources.settings import Settings
from rewards.config import RewardConfig, Weights
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

BASELINE = "baseline"
# Keys of `training` that change a run's cost, which must equal the baseline's.
BUDGET = ("steps", "problems_per_step", "group_size")
OFF = ("off", "none", "no", "false")


@dataclass(frozen=True)
class Variant:
    """One change: its name as given on the command line, and the profile keys that it sets."""

    name: str
    changes: tuple[str, ...]


def ablate(words: Sequence[str], seeds: int, settings: Settings, console: Console) -> int:
    """Train the baseline and the variants with each seed, score them and write the report.

    words: changes as the command line takes them. Returns exit code 0, or 1 if a training failed.
    Raises ProfileError before anything starts.
    """
    variants = [variant(each, settings) for each in words]
    if len({each.changes for each in variants}) < len(variants):
        raise ProfileError(f"{' and '.join(words)} make the same change: leave one out")

    def measure(study: Study) -> StudyResult:
        studies = {BASELINE: study}
        studies |= {each.name: study.with_changes(each.changes) for each in variants}
        for each in studies.values():
            _check_parts(each)
        scores, failed = train_and_score(studies, seeds, console)
        contributions = compare(scores, variants)
        if contributions:
            show(contributions, report(contributions, failed, study, seeds), console)
        return StudyResult(failed=len(failed), remaining=len(failed))

    return run_study(
        settings, f"ratchet ablate {shlex.join(words)} --seeds {seeds}", console, measure
    )


def variant(word: str, settings: Settings) -> Variant:
    """Return the variant for a word such as `reward.style=0` or `curriculum=off`.

    Raises ProfileError for an unknown key, a change without effect, and a change outside
    `training` and `reward` or of the budget.
    """
    variant = Variant(word, (full_key(word),))
    base, profile = settings.profile, settings.with_changes(variant.changes).profile
    sections = [
        name for name in Profile.model_fields if getattr(profile, name) != getattr(base, name)
    ]
    if not sections:
        raise ProfileError(f"{word!r} changes nothing: the baseline already has this value")
    if other := [name for name in sections if name not in ("training", "reward")]:
        raise ProfileError(
            f"{word!r} changes {', '.join(other)}, which the trainings of an ablation share: "
            "change training or reward"
        )
    if keys := [
        name for name in BUDGET if getattr(profile.training, name) != getattr(base.training, name)
    ]:
        raise ProfileError(
            f"{word!r} changes training.{keys[0]}, and with it the budget: give all runs "
            f"the same with --set training.{keys[0]}=N"
        )
    return variant


def full_key(word: str) -> str:
    """Return `section.key=value` for a short form.

    Keys of `training` and of the reward's weights need no section; the value `off` turns a reward
    component or the curriculum off. Raises ProfileError for an unknown key.
    """
    key, equals, value = word.partition("=")
    key = key.strip()
    off = value.strip().lower() in OFF
    first, _, last = key.partition(".")
    if key in ("curriculum", "training.curriculum"):
        return f"training.curriculum.schedule={Curriculum().schedule if off else value}"
    if first == "reward" and last in Weights.model_fields and last not in RewardConfig.model_fields:
        return f"reward.weights.{last}={0 if off else value}"
    if first in Training.model_fields:
        return f"training.{key}{equals}{value}"
    known = RewardConfig.model_fields if first == "reward" else {}
    if equals and (
        first not in Profile.model_fields or (known and last.partition(".")[0] not in known)
    ):
        short = [
            *Training.model_fields,
            *(f"reward.{name}" for name in (*Weights.model_fields, *known)),
        ]
        near = difflib.get_close_matches(key, short, 3)
        hint = (
            f"did you mean {' or '.join(near)}"
            if near
            else f"known are training's and reward's, such as {', '.join(short[-8:])}"
        )
        raise ProfileError(f"{word!r}: no such key, {hint}")
    return word


def train_and_score(
    studies: Mapping[str, Study], seeds: int, console: Console
) -> tuple[dict[tuple[str, int], Scorecard], dict[str, str]]:
    """Train and score all variants for one seed after another, so that an interrupted ablation has
    complete comparisons for the first seeds. Return the scorecards by name of the variant and seed,
    and the runs that failed with the reason.

    studies: by name of the variant, the baseline among them.
    """
    baseline = studies[BASELINE]
    benchmark, record = heldout_benchmark(baseline), baseline.record("ablate", console)
    runs: dict[str, tuple[str, int, Study, TrainingJob]] = {}
    titles: dict[str, str] = {}
    for number in range(1, seeds + 1):
        seed = 1000 * baseline.profile.seed + number
        for name, each in studies.items():
            job = each.job(seed)
            cell = f"{job.key} {benchmark.version}"
            runs[cell] = name, seed, each, job
            titles[cell] = f"{name}, seed {seed} ({number} of {seeds})"

    def start(trial: Trial) -> RunningCell:
        cell = trial.user_attrs["cell"]
        (_, _, study, job), title = runs[cell], titles[cell]
        console.print(f"{title} ...", highlight=False)
        yield from training(job, study, title, console)
        try:
            scorecard = score(job, baseline, benchmark)
        except LookupError as error:
            raise CellFailed(str(error)) from error
        share = f"{points(scorecard.pass_at_1)} % of {len(scorecard.solved)}"
        console.print(f"  {title}: {share} held-out tasks", highlight=False)
        return scorecard.pass_at_1

    record.run(record.named(titles), start, at_once=trainings_at_once(baseline))
    reasons = record.failed
    scores, failed = {}, {}
    for cell, (name, seed, _, job) in runs.items():
        if cell in reasons:
            failed[f"{name}, seed {seed}"] = reasons[cell]
        else:
            scores[name, seed] = score(job, baseline, benchmark)
    return scores, failed


def _check_parts(study: Study) -> None:
    """Run the exploit battery on the study's reward and a dry step of its plug-ins.

    Raises UnverifiedReward and PluginError.
    """
    from assets.verified_reward import battery_stamp, store_result, stored_result
    from rewards.battery.battery import run_battery
    from rewards.own import OwnReward, reward_of

    check_plugins(study.profile.training, unverified=study.profile.reward.unverified)
    config = study.profile.reward
    if config.kind == "tests" and stored_result(study.home, config) is None:
        reward = reward_of(config)
        with study.stage.run_context.new_sandbox() as sandbox:
            store_result(
                study.home,
                config,
                run_battery(
                    reward, sandbox, reward.task if isinstance(reward, OwnReward) else "code"
                ),
            )
    battery_stamp(study.home, config)


def heldout_benchmark(study: Study) -> Benchmark:
    """Return the held-out draw of the study, which no gate uses, as a benchmark."""
    from evaluation.benchmarks import heldout
    from evaluation.benchmarks.embedded import SAMPLING
    from problems.embedded.heldout import heldout_tasks

    sampling = SAMPLING.model_copy(update={"max_new_tokens": study.profile.training.answer_tokens})
    family = study.profile.family
    draw = study.stage.pipeline_run.draw(family.seed, study.profile.evaluation.heldout)
    return heldout(heldout_tasks(family, draw.first, draw.count), sampling)


def score(job: TrainingJob, study: Study, benchmark: Benchmark) -> Scorecard:
    """Score the best checkpoint of a finished training.

    The scorecard is stored in the job's folder and read from there the next time. Raises
    LookupError if the training saved no checkpoint.
    """
    from evaluation.evaluate import evaluate
    from verl_jobs.trainer.checkpoints import best

    path = job.path / "heldout.json"
    if path.exists() and (scorecard := Scorecard.read(path)).benchmark_version == benchmark.version:
        return scorecard
    step, checkpoint = best(job.path, job.validations())
    name = f"{job.run_id}-{job.key[:8]}-step-{step}"
    with study.stage.run_context.new_sandbox() as sandbox:
        scorecard = evaluate(checkpoint, name, hash_folder(checkpoint), benchmark, sandbox)
    scorecard.write(path)
    return scorecard


def compare(
    scores: dict[tuple[str, int], Scorecard], variants: Sequence[Variant]
) -> dict[str, Contribution]:
    """Compare each variant with the baseline on the seeds that both have finished.

    The intervals hold simultaneously with 95 % confidence (Bonferroni).
    """
    confidence = 1 - 0.05 / len(variants)
    by_change = {}
    for each in variants:
        seeds = sorted(
            seed for name, seed in scores if name == BASELINE and (each.name, seed) in scores
        )
        if seeds:
            before, after = (
                [_row(scores[name, seed]) for seed in seeds] for name in (BASELINE, each.name)
            )
            by_change[each.name] = contribution(before, after, confidence=confidence)
    return by_change


def _row(scorecard: Scorecard) -> list[float]:
    return [float(solved) for _, solved in sorted(scorecard.solved.items())]
