"""Multi-turn against single-turn training at equal tokens, from the same warm-up.

    python -m measurements.multi_turn                        three seeds
    python -m measurements.multi_turn --seeds 11 --tiny      a short trial run

Each seed has problems of the embedded family with two visible tests, and a tiny model that is
warmed up on demonstrations and on corrections after the Executor's report. Two trainings follow:
`single` (one completion, groups of 8) and `multi` (up to two programs per conversation, groups of
4). Their token budget (prompts and responses, verl's `perf/total_num_tokens`) is the smaller of
their totals, and each policy is its training's last checkpoint within it. The two policies and the
warm-up generate for the same held-out problems in three ways: one greedy completion; a greedy
conversation of two turns; and, at the conversation's cost, two completions, of which the first that
passes the visible tests counts. All tests decide whether a problem is solved. A repeated command
resumes: existing files in the folder are reused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from problems.dataset.rl_parquet import write_verl
from problems.demonstrations import demonstration
from problems.embedded.compositional import FamilyConfig, generate
from problems.embedded.heldout import heldout_draw
from problems.prompt import prompt_text
from problems.schema import Problem
from resources.ray.job import train
from resources.ray.private import Private
from rewards.composite import RewardConfig, reward_hash
from rewards.extraction import extract_code
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all
from verl_jobs.agents.conversation import Conversation, begin
from verl_jobs.agents.corrections import corrections
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.play import NoReviewer, converse
from verl_jobs.agents.writers import FrozenWriter
from verl_jobs.config.agents import Agents
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.warm_up import Prompt, WarmUp, warm_up

VISIBLE, TURNS, PROMPT, ANSWER, ROOM = 2, 2, 160, 104, 304
TOKENS = "perf/total_num_tokens"


@dataclass(frozen=True)
class Size:
    demonstrations: int = 4000
    train: int = 800
    warm_up_steps: int = 1000
    steps: int = 20
    problems_per_step: int = 32
    heldout: int = 400


TINY = Size(
    demonstrations=300, train=32, warm_up_steps=30, steps=2, problems_per_step=4, heldout=24
)
ARMS = {"single": (8, Agents()), "multi": (4, Agents(turns=TURNS, tokens=ROOM))}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/multi_turn"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    size, folder = (
        (TINY if arguments.tiny else Size()),
        (arguments.folder / ("tiny" if arguments.tiny else "full")).absolute(),
    )
    print(table({seed: one_seed(folder / str(seed), seed, size) for seed in arguments.seeds}))


def one_seed(folder: Path, seed: int, size: Size) -> dict[str, dict[str, list[bool]]]:
    """Train and evaluate one seed; finished parts are read from the folder.

    Returns, by policy and way of generation, whether each held-out problem was solved.
    """
    family = FamilyConfig(
        seed=seed,
        demonstrations=size.demonstrations,
        train=size.train,
        validation=16,
        visible_tests=VISIBLE,
    )
    problems = generate(family)
    if not (folder / "start" / "config.json").exists():
        start(folder, problems, seed, size)
    jobs = {arm: train_arm(folder, arm, problems, seed, size) for arm in ARMS}
    tokens = {arm: cumulative_tokens(job) for arm, job in jobs.items()}
    budget = min(max(by_step.values()) for by_step in tokens.values())
    policies = {"warm-up": folder / "start"} | {
        arm: last_within(job, tokens[arm], budget) for arm, job in jobs.items()
    }
    heldout = heldout_draw(family, 1, size.heldout)
    solved_by_policy = {}
    for name, policy in policies.items():
        path = folder / f"answers-{name}.json"
        if not path.exists():
            results = {"policy": str(policy), "solved": solved_by_way(policy, heldout)}
            path.write_text(json.dumps(results))
        solved_by_policy[name] = json.loads(path.read_text())["solved"]
    print(
        f"seed {seed}: equal tokens {budget:,}; "
        + "; ".join(f"{name} {rates(ways)}" for name, ways in solved_by_policy.items()),
        flush=True,
    )
    return solved_by_policy


def start(folder: Path, problems: Sequence[Problem], seed: int, size: Size) -> None:
    """Create a model and warm it up on demonstrations and on corrections after the Executor's
    report.
    """
    demonstrated = [problem for problem in problems if problem.split == "demonstrations"]
    with Sandbox() as sandbox:
        chats: list[tuple[Prompt, str]] = [
            (prompt_text(problem), demonstration(problem)) for problem in demonstrated
        ]
        chats += corrections(demonstrated, Executor(sandbox))
    base = folder / "base"
    texts = [
        prompt if isinstance(prompt, str) else prompt[-1]["content"] for prompt, _ in chats
    ] + [completion for _, completion in chats]
    make(TinyModel(seed=seed, positions=512), texts, base)
    random.Random(seed).shuffle(chats)
    warm_up(base, chats, WarmUp(seed=seed, steps=size.warm_up_steps), folder / "start")


def train_arm(
    folder: Path, arm: str, problems: Sequence[Problem], seed: int, size: Size
) -> TrainingJob:
    """Run the training of one arm to its end, and return its job."""
    group, agents = ARMS[arm]
    rows = {split: folder / f"{split}.parquet" for split in ("train", "validation")}
    for split, path in rows.items():
        write_verl([problem for problem in problems if problem.split == split], path)
    training = Training(
        steps=size.steps,
        save_every=max(1, size.steps // 10),
        problems_per_step=size.problems_per_step,
        group_size=group,
        prompt_tokens=PROMPT,
        answer_tokens=ANSWER,
        agents=agents,
    )
    job = TrainingJob(
        folder=str(folder / arm),
        chain=f"{arm}-{seed}",
        start=str(folder / "start"),
        train=str(rows["train"]),
        validation=str(rows["validation"]),
        inputs={},
        training=training,
        reward=RewardConfig(),
        reward_hash=reward_hash(RewardConfig()),
        isolation="auto",
        seed=seed,
    )
    job.path.mkdir(parents=True, exist_ok=True)
    train(job, Private(folder.parent / "ray", job))
    return job


def cumulative_tokens(job: TrainingJob) -> dict[int, float]:
    """Map each step to the number of tokens trained on so far."""
    total, tokens = 0.0, {}
    for record in metrics(job.path):
        total += record.get(TOKENS, 0.0)
        tokens[record["step"]] = total
    return tokens


def last_within(job: TrainingJob, tokens: dict[int, float], budget: float) -> Path:
    """Return the last checkpoint within the budget of tokens."""
    saved = candidates(job.path)
    return saved[max(step for step in saved if tokens[step] <= budget or step == min(saved))]


def solved_by_way(policy: Path, problems: Sequence[Problem]) -> dict[str, list[bool]]:
    """Return, by way of generation, whether the policy solves each problem."""
    with Sandbox() as sandbox:
        executor = Executor(sandbox)
        greedy = FrozenWriter(policy, ANSWER)
        sampling = FrozenWriter(policy, ANSWER, temperature=1.0, seed=1)
        conversations = run_conversations(problems, greedy, executor, TURNS)
        single = run_conversations(problems, sampling, executor, 1)
        completions = {
            "one answer": [each.attempts[0].completion for each in conversations],
            "conversation": [each.attempts[-1].completion for each in conversations],
            "two answers": [
                (one if one.attempts[0].finding.solved else two).attempts[0].completion
                for one, two in zip(conversations, single, strict=True)
            ],
        }
        return {way: solved(problems, texts, sandbox) for way, texts in completions.items()}


def run_conversations(
    problems: Sequence[Problem], writer: FrozenWriter, executor: Executor, turns: int
) -> list[Conversation]:
    conversations = [
        begin(problem, [{"role": "user", "content": prompt_text(problem)}]) for problem in problems
    ]
    asyncio.run(converse(conversations, writer, executor, NoReviewer(), turns))
    return conversations


def solved(problems: Sequence[Problem], completions: Sequence[str], sandbox: Sandbox) -> list[bool]:
    """Return whether the program of each completion passes all tests of its problem."""
    jobs = [
        problem.job(extract_code(completion), problem.problem_id)
        for problem, completion in zip(problems, completions, strict=True)
    ]
    return [report.verdict is Verdict.AC for report in run_all(sandbox, jobs)]


def rates(ways: dict[str, list[bool]]) -> str:
    return ", ".join(
        f"{title(way)} {100 * statistics.mean(solved):.1f} %" for way, solved in ways.items()
    )


def title(way: str) -> str:
    """Return the printed name of a key in `answers-<policy>.json`."""
    return way.replace("answer", "completion")


def table(results: dict[int, dict[str, dict[str, list[bool]]]]) -> str:
    """Return a table of means over seeds, with intervals by resampling seeds and problems.

    results: by seed, policy and way of generation.
    """
    lines = [
        (
            f"\n| policy | generation | solved ({len(results)} seeds) | difference to the "
            "single-turn policy's one completion (95 % interval) |"
        ),
        "|---|---|---|---|",
    ]
    for name in next(iter(results.values())):
        for way in ("one answer", "conversation", "two answers"):
            pairs = [(by[name][way], by["single"]["one answer"]) for by in results.values()]
            mean = statistics.mean(statistics.mean(one) for one, _ in pairs)
            low, middle, high = interval(pairs)
            lines.append(
                f"| {name} | {title(way)} | {100 * mean:.1f} % | {100 * middle:+.1f} "
                f"({100 * low:+.1f} to {100 * high:+.1f}) |"
            )
    return "\n".join(lines)


def interval(
    pairs: Sequence[tuple[list[bool], list[bool]]], draws: int = 2000
) -> tuple[float, float, float]:
    """Return the 2.5 % quantile, the mean and the 97.5 % quantile of the mean paired difference.

    Two-stage bootstrap over seeds, then over problems of a seed (Efron and Tibshirani 1993).
    """
    import numpy as np

    rng = np.random.default_rng(0)
    differences = [np.array(one, float) - np.array(other, float) for one, other in pairs]
    means = [
        np.mean(
            [
                rng.choice(differences[at], len(differences[at])).mean()
                for at in rng.integers(0, len(differences), len(differences))
            ]
        )
        for _ in range(draws)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    return (
        float(low),
        float(np.mean([difference.mean() for difference in differences])),
        float(high),
    )


if __name__ == "__main__":
    main()
