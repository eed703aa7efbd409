"""Effect of each curriculum schedule on held-out problems, compared with uniform sampling.

    python -m measurements.curriculum      three seeds, embedded size, uniform against window
    python -m measurements.curriculum --size small --seeds 21 22         a third of the size
    python -m measurements.curriculum --size tiny --seeds 21 22   a trial run: nothing is learned
    python -m measurements.curriculum --schedules uniform window mixed competence reverse

All schedules of a seed share the start policy (warmed up on the seed's demonstrations), the
training problems ranked by it, and the held-out draw. A schedule is scored by the policy after its
last step, not by the best checkpoint, so that selection adds no noise. Dataset weights are 1, so
that only the schedule differs. A repeated command resumes, an interrupted training from its last
checkpoint; results are stored in FOLDER/<size>-<seed>/. Prints, for each seed: held-out pass@1
before and after, the paired difference to uniform (95 %, bootstrap over tasks), and the share of
sampled problems with some passing and some failing completions (only these have a non-zero
advantage); then the mean difference over seeds with its t interval.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from assets.difficulty_rankings import sample
from evaluation.benchmarks import heldout
from evaluation.evaluate import evaluate
from evaluation.generation.decoder import generate
from evaluation.sampling import Sampling
from evaluation.statistics.bounded_mean import mean_interval
from problems.dataset.rl_parquet import write_verl
from problems.demonstrations import demonstration
from problems.difficulty.difficulty import rank
from problems.difficulty.pass_rate_prior import FILE, expect, write_expected
from problems.embedded.compositional import FamilyConfig
from problems.embedded.compositional import generate as compose
from problems.embedded.heldout import heldout_draw
from problems.prompt import prompt_text
from problems.schema import Problem
from resources.ray.job import train
from resources.ray.private import Private
from rewards.composite import RewardConfig, reward_hash, score_answers
from rewards.own import reward_of
from sandbox.sandbox import Sandbox, SandboxConfig
from verl_jobs import samples
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.training import Training
from verl_jobs.curriculum import draws
from verl_jobs.job import TrainingJob, candidates
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.warm_up import WarmUp, warm_up


@dataclass(frozen=True)
class Size:
    family: dict[str, int]
    warm_up: int
    ranked: int
    heldout: int
    training: dict[str, int]


SIZES = {
    "small": Size(
        {"demonstrations": 2000, "train": 600, "validation": 16},
        500,
        128,
        400,
        {"steps": 12, "problems_per_step": 16, "group_size": 8, "save_every": 4},
    ),
    "tiny": Size(
        {"demonstrations": 200, "train": 64, "validation": 8},
        20,
        8,
        16,
        {"steps": 2, "problems_per_step": 4, "group_size": 2, "save_every": 2},
    ),
    "embedded": Size({}, 800, 128, 400, {}),
}
COMPLETIONS = 4  # per ranked problem


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/curriculum"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23])
    parser.add_argument("--schedules", nargs="+", default=["uniform", "window"])
    parser.add_argument("--size", choices=sorted(SIZES), default="embedded")
    arguments = parser.parse_args()
    if arguments.schedules[0] != "uniform":
        parser.error("the first schedule is uniform: the others are compared with it")
    rows: list[dict[str, Any]] = []
    for seed in arguments.seeds:
        seeded = Seeded(
            (arguments.folder / f"{arguments.size}-{seed}").absolute(), seed, SIZES[arguments.size]
        )
        seeded.prepare()
        results = {schedule: seeded.measure(schedule) for schedule in arguments.schedules}
        rows += [compare(seed, schedule, results) for schedule in arguments.schedules]
    print(table(rows))
    for schedule in arguments.schedules[1:]:
        print(
            over_seeds(schedule, [row["difference"] for row in rows if row["schedule"] == schedule])
        )


@dataclass(frozen=True)
class Seeded:
    """One seed: the files that all schedules share, and the result of each schedule."""

    folder: Path
    seed: int
    size: Size

    @property
    def family(self) -> FamilyConfig:
        return FamilyConfig(seed=self.seed, **self.size.family)

    def prepare(self) -> None:
        """Write the start policy, `train.parquet`, `validation.parquet` and the expected pass rate
        of each problem, unless they exist.
        """
        if (self.folder / "prepared").exists():
            return
        problems = compose(self.family)
        pairs = [
            (prompt_text(each), demonstration(each))
            for each in problems
            if each.split == "demonstrations"
        ]
        make(
            TinyModel(seed=self.seed),
            [text for pair in pairs for text in pair],
            self.folder / "base",
        )
        warm_up(
            self.folder / "base",
            pairs,
            WarmUp(seed=self.seed, steps=self.size.warm_up),
            self.folder / "start",
        )
        training = [each for each in problems if each.split == "train"]
        ranks = rank(self._solved_by_problem(sample(training, self.size.ranked, self.seed)))
        # As in a pipeline run (assets/checkpoint.py), problems without a failure are left out.
        easy = {row.problem_id for row in ranks if row.passed == row.n}
        problems_left = [each for each in training if each.problem_id not in easy]
        write_verl(problems_left, self.folder / "train.parquet")
        write_verl(
            [each for each in problems if each.split == "validation"],
            self.folder / "validation.parquet",
        )
        write_expected(expect(problems_left, ranks, {}), self.folder / FILE)
        write_atomic(self.folder / "prepared", "")

    def _solved_by_problem(self, problems: list[Problem]) -> dict[str, list[bool]]:
        """Sample completions from the start policy and score them."""
        chats = [[{"role": "user", "content": prompt_text(each)}] for each in problems]
        sampling = Sampling(
            n=COMPLETIONS,
            temperature=1.0,
            max_new_tokens=Training().answer_tokens,
            seed=self.seed,
        )
        completions = generate(self.folder / "start", chats, sampling)
        pairs = [
            (each, completions[i * COMPLETIONS + k].text)
            for i, each in enumerate(problems)
            for k in range(COMPLETIONS)
        ]
        with Sandbox(SandboxConfig()) as sandbox:
            scores = score_answers(sandbox, reward_of(RewardConfig()), pairs)
        solved: dict[str, list[bool]] = {}
        for (each, _), score in zip(pairs, scores, strict=True):
            if score.value is not None:
                solved.setdefault(each.problem_id, []).append(score.solved)
        return solved

    def measure(self, schedule: str) -> dict[str, Any]:
        """Train with the schedule unless that is done. Return its result.

        Keys: `before` and `after` map each held-out task to whether it is solved; `mixed` is the
        share of sampled problems of which some completions passed; `problems` their number.
        """
        result_file = self.folder / f"{schedule}.json"
        if not result_file.exists():
            plan = Curriculum.model_validate({"schedule": schedule})
            job = self._job(schedule, Training(curriculum=plan, **self.size.training))
            train(job, Private(self.folder / "ray", job))
            last = candidates(job.path)[job.training.steps]
            steps = [draws.read(job.path, step) for step in samples.steps(job.path)]
            mixed = [0 < draw.passed < draw.n for step in steps for draw in step]
            problem_ids = {draw.problem_id for step in steps for draw in step}
            result = {
                "after": self._solved(last),
                "before": self._before(),
                "mixed": statistics.fmean(mixed),
                "problems": len(problem_ids),
            }
            write_atomic(result_file, json.dumps(result))
        result = json.loads(result_file.read_text(encoding="utf-8"))
        print(
            (
                f"seed {self.seed}, {schedule}: {share(result['before']):.1f} to "
                f"{share(result['after']):.1f} %"
            ),
            file=sys.stderr,
            flush=True,
        )
        return dict(result)

    def _job(self, schedule: str, training: Training) -> TrainingJob:
        reward = RewardConfig()
        return TrainingJob(
            folder=str(self.folder / schedule),
            chain=f"curriculum-{self.seed}-{schedule}",
            start=str(self.folder / "start"),
            train=str(self.folder / "train.parquet"),
            validation=str(self.folder / "validation.parquet"),
            inputs={"seed": str(self.seed)},
            training=training,
            reward=reward,
            reward_hash=reward_hash(reward),
            isolation="auto",
            seed=self.seed,
        )

    def _before(self) -> dict[str, bool]:
        path = self.folder / "before.json"
        if not path.exists():
            write_atomic(path, json.dumps(self._solved(self.folder / "start")))
        return dict(json.loads(path.read_text(encoding="utf-8")))

    def _solved(self, checkpoint: Path) -> dict[str, bool]:
        benchmark = heldout(heldout_draw(self.family, 1, self.size.heldout))
        with Sandbox(SandboxConfig()) as sandbox:
            return evaluate(checkpoint, checkpoint.name, "", benchmark, sandbox).solved


def compare(seed: int, schedule: str, results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the table's row of a schedule, with its paired difference to uniform."""
    own, uniform = results[schedule], results["uniform"]
    differences = [
        100.0 * (own["after"][task] - uniform["after"][task]) for task in sorted(own["after"])
    ]
    low, high = mean_interval(differences, -100.0, 100.0)
    row = {
        "seed": seed,
        "schedule": schedule,
        "tasks": len(differences),
        "before": share(own["before"]),
        "after": share(own["after"]),
    }
    return row | {
        "difference": statistics.fmean(differences),
        "low": low,
        "high": high,
        "mixed": own["mixed"],
        "problems": own["problems"],
    }


def share(solved: dict[str, bool]) -> float:
    return 100 * statistics.fmean(solved.values())


def table(rows: list[dict[str, Any]]) -> str:
    head = (
        (
            "| seed | schedule | n | before | after | to uniform (95 %) | sampled problems with "
            "mixed results | problems sampled |\n"
        )
        + "|---" * 8
        + "|"
    )
    lines = [
        (
            f"| {row['seed']} | {row['schedule']} | {row['tasks']} | {row['before']:.1f} % | "
            f"{row['after']:.1f} % | "
        )
        + (
            ""
            if row["schedule"] == "uniform"
            else f"{row['difference']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})"
        )
        + f" | {row['mixed']:.0%} | {row['problems']} |"
        for row in rows
    ]
    return "\n".join([head, *lines])


def over_seeds(schedule: str, differences: list[float]) -> str:
    """Return the mean over seeds with Student's 95 % interval; the sample size is that of seeds."""
    if len(differences) < 2:
        return f"{schedule}: one seed has no interval over seeds"
    from scipy.stats import t

    half = (
        t.ppf(0.975, len(differences) - 1)
        * statistics.stdev(differences)
        / math.sqrt(len(differences))
    )
    mean = statistics.fmean(differences)
    conclusion = (
        "the interval contains 0: no difference is shown"
        if abs(mean) <= half
        else "the interval does not contain 0"
    )
    return (
        f"{schedule} to uniform over {len(differences)} seeds: {mean:+.1f} points "
        f"({mean - half:+.1f} to {mean + half:+.1f}); {conclusion}"
    )


if __name__ == "__main__":
    main()
