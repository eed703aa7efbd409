"""Does training in conversations pay? Multi-turn against single-turn at equal tokens, from the same
warm-up, with seeds and intervals.

    python -m measurements.multi_turn                        three seeds
    python -m measurements.multi_turn --seeds 11 --tiny      to see the script work

For each seed: problems of the embedded family with two visible tests, a tiny model warmed up on
demonstrations and on fixing them after the Executor's report, and two trainings: `single` (one
answer, groups of 8) and `multi` (up to two programs a conversation, groups of 4). Both end where
the tokens that they were trained on (prompts and responses, verl's `perf/total_num_tokens`) reach
the same number: of each the last checkpoint before it is taken. Each policy, and the warm-up, is
then asked the same held-out problems in three ways: one greedy answer; a conversation of two turns,
greedy; and, at the conversation's price, two answers of which the first that passes the visible
tests is taken. All count by all tests. It resumes: what lies in the folder is not done
again.
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
from problems.prompt import prompt_text
from problems.schema import Problem
from problems.sources.compositional import FamilyConfig, demonstration, generate
from problems.sources.heldout import older_draw
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
    found = {seed: one_seed(folder / str(seed), seed, size) for seed in arguments.seeds}
    print(table(found))


def one_seed(folder: Path, seed: int, size: Size) -> dict[str, dict[str, list[bool]]]:
    """Policy -> way of asking -> whether each held-out problem was solved."""
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
    jobs = {arm: trained(folder, arm, problems, seed, size) for arm in ARMS}
    spent = {arm: sum_tokens(job) for arm, job in jobs.items()}
    budget = min(max(tokens.values()) for tokens in spent.values())
    policies = {"warm-up": folder / "start"} | {
        arm: within(job, spent[arm], budget) for arm, job in jobs.items()
    }
    heldout = older_draw(family, 1, size.heldout)
    answered = {}
    for name, policy in policies.items():
        path = folder / f"answers-{name}.json"
        if not path.exists():
            path.write_text(json.dumps({"policy": str(policy), "solved": asked(policy, heldout)}))
        answered[name] = json.loads(path.read_text())["solved"]
    print(
        f"seed {seed}: equal tokens {budget:,}; "
        + "; ".join(f"{name} {rates(ways)}" for name, ways in answered.items()),
        flush=True,
    )
    return answered


def start(folder: Path, problems: Sequence[Problem], seed: int, size: Size) -> None:
    """A model from scratch, warmed up on single answers and on fixing what the Executor found
    wrong in them.
    """
    shown_to = [problem for problem in problems if problem.split == "demonstrations"]
    with Sandbox() as sandbox:
        chats: list[tuple[Prompt, str]] = [
            (prompt_text(problem), demonstration(problem)) for problem in shown_to
        ]
        chats += corrections(shown_to, Executor(sandbox))
    base = folder / "base"
    texts = [
        question if isinstance(question, str) else question[-1]["content"] for question, _ in chats
    ] + [answer for _, answer in chats]
    make(TinyModel(seed=seed, positions=512), texts, base)
    random.Random(seed).shuffle(chats)
    warm_up(base, chats, WarmUp(seed=seed, steps=size.warm_up_steps), folder / "start")


def trained(
    folder: Path, arm: str, problems: Sequence[Problem], seed: int, size: Size
) -> TrainingJob:
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


def sum_tokens(job: TrainingJob) -> dict[int, float]:
    """Tokens trained on up to each step."""
    total, found = 0.0, {}
    for record in metrics(job.path):
        total += record.get(TOKENS, 0.0)
        found[record["step"]] = total
    return found


def within(job: TrainingJob, tokens: dict[int, float], budget: float) -> Path:
    """The last checkpoint within the budget."""
    saved = candidates(job.path)
    return saved[max(step for step in saved if tokens[step] <= budget or step == min(saved))]


def asked(policy: Path, problems: Sequence[Problem]) -> dict[str, list[bool]]:
    with Sandbox() as sandbox:
        executor, greedy, drawn = (
            Executor(sandbox),
            FrozenWriter(policy, ANSWER),
            FrozenWriter(policy, ANSWER, temperature=1.0, seed=1),
        )
        talks = played(problems, greedy, executor, TURNS)
        again = played(problems, drawn, executor, 1)
        last = {
            "one answer": [talk.attempts[0].answer for talk in talks],
            "conversation": [talk.attempts[-1].answer for talk in talks],
            "two answers": [
                (one if one.attempts[0].finding.solved else two).attempts[0].answer
                for one, two in zip(talks, again, strict=True)
            ],
        }
        return {way: solved(problems, answers, sandbox) for way, answers in last.items()}


def played(
    problems: Sequence[Problem], writer: FrozenWriter, executor: Executor, turns: int
) -> list[Conversation]:
    talks = [
        begin(problem, [{"role": "user", "content": prompt_text(problem)}]) for problem in problems
    ]
    asyncio.run(converse(talks, writer, executor, NoReviewer(), turns))
    return talks


def solved(problems: Sequence[Problem], answers: Sequence[str], sandbox: Sandbox) -> list[bool]:
    jobs = [
        problem.job(extract_code(answer), problem.problem_id)
        for problem, answer in zip(problems, answers, strict=True)
    ]
    return [report.verdict is Verdict.AC for report in run_all(sandbox, jobs)]


def rates(ways: dict[str, list[bool]]) -> str:
    return ", ".join(f"{way} {100 * statistics.mean(done):.1f} %" for way, done in ways.items())


def table(found: dict[int, dict[str, dict[str, list[bool]]]]) -> str:
    """Means over seeds, and intervals by resampling problems within each seed and seeds."""
    lines = [
        (
            f"\n| policy | asked | solved ({len(found)} seeds) | less the single-turn policy's "
            "one answer (95 % interval) |"
        ),
        "|---|---|---|---|",
    ]
    for name in next(iter(found.values())):
        for way in ("one answer", "conversation", "two answers"):
            pairs = [(by[name][way], by["single"]["one answer"]) for by in found.values()]
            mean = statistics.mean(statistics.mean(one) for one, _ in pairs)
            low, middle, high = interval(pairs)
            lines.append(
                f"| {name} | {way} | {100 * mean:.1f} % | {100 * middle:+.1f} "
                f"({100 * low:+.1f} to {100 * high:+.1f}) |"
            )
    return "\n".join(lines)


def interval(
    pairs: Sequence[tuple[list[bool], list[bool]]], draws: int = 2000
) -> tuple[float, float, float]:
    """Of the mean paired difference: a two-stage bootstrap, seeds and then problems of a seed
    (Efron and Tibshirani 1993).
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
