"""Pipeline runs in a row from one home: does each night make the champion better?

    python -m measurements.nights                             five seeds, ten nights each
    python -m measurements.nights --seeds 11 --nights 3       fewer
    python -m measurements.nights --nights 1 --random-reward  control: none may be promoted

After each night the champion answers the same 2,000 held-out tasks greedily. They are far beyond
the numbers that gates use, so no decision depends on them. Each seed has its own problems, weights,
batches and rollouts; the defaults were selected on seeds 1 to 10. Each night is one line of
`nights.jsonl` in the seed's home; a stopped measurement continues after the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from evaluation.benchmarks.embedded import answering, heldout
from evaluation.evaluate import evaluate
from evaluation.scorecard import Scorecard
from evaluation.statistics.hypothesis_tests import mcnemar, wilson
from problems.embedded.heldout import heldout_tasks
from resources.config.load import load_profile
from resources.config.profile import Profile
from resources.home import Home
from resources.registry.ledger import Entry, Ledger
from resources.run_record import records
from sandbox.sandbox import Sandbox

FIRST, TASKS = 40_000_000, 2_000  # a hundred thousand gates later
LEVEL = 0.01  # of the test that a champion is worse than the one before it
HEAD = (
    "| seed | night | decision | gate: champion | challenger | p | champion on 2,000 tasks | "
    "minutes |\n" + "|---" * 8 + "|"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/measurements/nights"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    parser.add_argument("--nights", type=int, default=10)
    parser.add_argument("--random-reward", action="store_true")
    parser.add_argument("--profile", default="embedded")
    arguments = parser.parse_args()
    print(HEAD)
    for seed in arguments.seeds:
        name = f"{'random' if arguments.random_reward else 'gated'}-{arguments.profile}-{seed}"
        path = (arguments.folder / name).absolute()
        path.mkdir(parents=True, exist_ok=True)
        sections = {"family": {"seed": seed}, "tiny_model": {"seed": seed}, "seed": seed}
        profile = {"extends": arguments.profile, "warm_up": {"seed": seed}} | sections
        if arguments.random_reward:
            profile["reward"] = {"kind": "random"}
        (path / "profile.yaml").write_text(yaml.safe_dump(profile))
        for night in range(1, arguments.nights + 1):
            rows = night_rows(path)
            if night > len(rows):
                row = one_night(Home(path), night)
                with (path / "nights.jsonl").open("a", encoding="utf-8") as file:
                    print(json.dumps(row), file=file)
                rows.append(row)
            print(line(seed, night, rows[night - 1]), flush=True)


def one_night(home: Home, night: int) -> dict[str, Any]:
    """Run one night to its decision, then score the champion. Return the night's row."""
    run_id = f"chain-{night:04d}"
    summary = home.reports / run_id / "summary.json"
    if not summary.exists():
        ratchet(home, "train")
    decided = json.loads(summary.read_text())
    champion = Ledger(home.ledger).champion()
    assert champion
    card = fresh_card(home, champion)
    earlier = [row["solved"] for row in night_rows(home.path)][-1:]
    lost = [sum(was[task] > now for task, now in card.solved.items()) for was in earlier]
    won = [sum(was[task] < now for task, now in card.solved.items()) for was in earlier]
    [record] = [each for each in records(home.runs) if each.id == run_id]
    comparison = decided["decision"]["comparison"]
    return {
        "promoted": decided["promoted"],
        "before": comparison["before"]["share"],
        "after": comparison["after"]["share"],
        "p": comparison["p_better"],
        "fresh": card.pass_at_1,
        "fell": bool(earlier) and mcnemar(won[0], lost[0]).worse <= LEVEL,
        "minutes": record.minutes,
        "solved": dict(card.solved),
    }


def fresh_card(home: Home, champion: Entry) -> Scorecard:
    """Return the champion's scorecard on the tasks that no gate uses."""
    profile: Profile = load_profile(str(home.path / "profile.yaml"))
    tasks = heldout_tasks(profile.family, FIRST, TASKS)
    with Sandbox(profile.sandbox) as sandbox:
        return evaluate(
            Path(champion.path),
            champion.checkpoint,
            champion.checkpoint_hash,
            heldout(tasks, answering(profile.training.answer_tokens)),
            sandbox,
        )


def ratchet(home: Home, *arguments: str) -> None:
    environment = os.environ | {"RATCHET_HOME": str(home.path)}
    command = [sys.executable, "-m", "cli.main", *arguments]
    command += ["--profile", str(home.path / "profile.yaml")]
    with (home.path / "nights.log").open("ab") as log:
        subprocess.run(command, env=environment, stdout=log, stderr=log, check=True)


def night_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the nights that are done. A torn last line is no night."""
    file = path / "nights.jsonl"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def line(seed: int, night: int, row: dict[str, Any]) -> str:
    low, high = wilson(round(row["fresh"] * TASKS), TASKS)
    return (
        f"| {seed} | {night} | {'promoted' if row['promoted'] else 'refused'} "
        f"| {row['before']:.1%} | {row['after']:.1%} | {row['p']:.1g} "
        f"| {row['fresh']:.1%} ({low:.1%} to {high:.1%}){' FELL' if row['fell'] else ''} "
        f"| {row['minutes']:.1f} |"
    )


if __name__ == "__main__":
    main()
