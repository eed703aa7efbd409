"""Nights with a frozen model: unearned promotions and false alarms.

    python -m measurements.frozen_nights HOME [--nights 30] [--out nights.jsonl]

Real: the champion of HOME (its weights, tasks, draws and sandbox). Each night takes the next
held-out draw that no gate has used, and generates two completions a task at temperature 1. The
first completions are the champion's scorecard, the second ones the challenger's: the same weights,
so every promotion is unearned. The gate decides by the embedded profile's policy, with the earlier
nights' gates. The regression sensor's test compares each night's champion with the first night's.
Each night is one line of the file; a stopped measurement continues after the last one.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks.embedded import answering, heldout
from evaluation.evaluate import evaluate
from evaluation.promotion.checks import Facts
from evaluation.promotion.gate import Gate, decide, regressed
from evaluation.scorecard import Scorecard
from evaluation.statistics.hypothesis_tests import wilson
from problems.embedded.heldout import heldout_tasks
from resources.config.load import load_profile
from resources.config.profile import HELDOUT
from resources.home import Home
from resources.registry.ledger import Entry, Ledger
from resources.run_record import records
from sandbox.sandbox import Sandbox

PROFILE = load_profile("embedded")
ALARM = PROFILE.automation.regression_alpha


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("frozen_nights.jsonl"))
    arguments = parser.parse_args()
    home = Home(arguments.home)
    champion = Ledger(home.ledger).champion()
    if champion is None:
        parser.error(f"{home.path} has no champion: run `ratchet demo` first")
    ends = [draw.end for record in records(home.runs) for draw in record.draws]
    first_free = max(ends, default=0)
    rows = _rows(arguments.out)
    first = Scorecard.model_validate(rows[0]["champion"]) if rows else None
    with Sandbox(PROFILE.sandbox) as sandbox:
        for night in range(len(rows), arguments.nights):
            started = time.perf_counter()
            at = first_free + night * PROFILE.evaluation.heldout
            before, after = two_cards(champion, at, sandbox)
            first = first or before
            row = night_row(before, after, first, rows) | {
                "first_task": at,
                "seconds": time.perf_counter() - started,
                "champion": before.model_dump(mode="json") if not rows else None,
            }
            rows.append(row)
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
    print(summary(rows))


def two_cards(champion: Entry, first_task: int, sandbox: Sandbox) -> tuple[Scorecard, Scorecard]:
    """Return two scorecards over one draw, each with its own completion per task."""
    tasks = heldout_tasks(PROFILE.family, first_task, PROFILE.evaluation.heldout)
    benchmark = heldout(tasks, answering(PROFILE.training.answer_tokens)).with_settings(
        BenchmarkSettings(name=HELDOUT, n=2, temperature=1.0)
    )
    both = evaluate(
        Path(champion.path), champion.checkpoint, champion.checkpoint_hash, benchmark, sandbox
    )
    samples = [
        tuple(
            each.model_copy(update={"sample": 0}) for each in both.samples if each.sample == number
        )
        for number in (0, 1)
    ]
    challenger = {"checkpoint": "again", "checkpoint_hash": "again"}
    return (
        both.model_copy(update={"samples": samples[0]}),
        both.model_copy(update={"samples": samples[1]} | challenger),
    )


def night_row(
    before: Scorecard, after: Scorecard, first: Scorecard, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """Run the gate and the sensor's test of one night. rows: the earlier nights."""
    gates = tuple(Gate.model_validate(row["gate"]) for row in rows)
    decision = decide(before, after, PROFILE.policy, facts=Facts(gates=gates))
    comparison = decision.comparison
    gate = decision.gate(f"night-{len(rows) + 1}")
    assert comparison and gate
    fall = regressed(first, before, ALARM) if rows else None
    return {
        "kind": decision.kind,
        "gate": gate.model_dump(mode="json"),
        "before": before.pass_at_1,
        "after": after.pass_at_1,
        "won": len(comparison.won),
        "lost": len(comparison.lost),
        "fell": bool(fall and fall.fell),
        "fall_p": fall.p_value if fall else None,
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table of the nights, and the counts with their intervals."""
    lines = [
        "| night | champion | challenger | won | lost | p | level | decision | sensor's p |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for night, row in enumerate(rows, start=1):
        fall = "" if row["fall_p"] is None else f"{row['fall_p']:.3f}"
        gate = row["gate"]
        lines.append(
            f"| {night} | {row['before']:.1%} | {row['after']:.1%} | {row['won']} | {row['lost']} "
            f"| {gate['p_value']:.3f} | {gate['level']:.2g} | {row['kind']} | {fall} |"
        )
    for event, key, value in (("promotions", "kind", "promote"), ("false alarms", "fell", True)):
        count = sum(row[key] == value for row in rows)
        low, high = wilson(count, len(rows))
        lines.append(f"\n{event}: {count} of {len(rows)} nights ({low:.1%} to {high:.1%})")
    lines.append(f"\n{sum(row['seconds'] for row in rows) / len(rows):.0f} s a night")
    return "\n".join(lines)


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
