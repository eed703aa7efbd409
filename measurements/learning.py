"""Gain of complete pipeline runs from empty homes, and of controls with a random reward.

    python -m measurements.learning             five seeds, real reward
    python -m measurements.learning --control   three seeds, random reward: none may be promoted
    python -m measurements.learning --profile small  a short trial run

Seeds 1 to 10, on which the defaults were selected, are not used. Each seed has its own problems,
initial weights, batches and rollouts. A repeated command reads finished runs. Prints a table:
held-out pass@1 before and after, interval of the difference, p-value, decision, minutes, peak
memory, seconds a step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from resources.home import Home
from resources.run_record import PipelineRun


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/learning"))
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--profile", default="embedded")
    arguments = parser.parse_args()
    rows = []
    seeds = arguments.seeds or ([11, 12, 13] if arguments.control else [11, 12, 13, 14, 15])
    for seed in seeds:
        home = (
            arguments.folder / f"{'control' if arguments.control else arguments.profile}-{seed}"
        ).absolute()
        rows.append(pipeline_run(home, seed, control=arguments.control, profile=arguments.profile))
        print(line(seed, rows[-1]), flush=True)
    print("\n" + HEAD)
    for seed, row in zip(seeds, rows, strict=True):
        print(line(seed, row))
    gains = [row["gain"] for row in rows]
    promoted = f"promoted {sum(row['promoted'] for row in rows)} of {len(rows)}"
    print(
        f"\ngain: mean {statistics.mean(gains):+.1f} points, from {min(gains):+.1f} to "
        f"{max(gains):+.1f}; {promoted}"
    )


def pipeline_run(home: Path, seed: int, *, control: bool, profile: str) -> dict[str, Any]:
    """Run this home's first pipeline run to its decision, unless it has finished; return its row.

    control: train with a random reward.
    """
    home.mkdir(parents=True, exist_ok=True)
    base = (
        yaml.safe_load(
            (
                Path(__file__).parent.parent / "pipelines" / "profiles" / f"{profile}.yaml"
            ).read_text()
        )
        or {}
    )
    for section in ("family", "tiny_model", "warm_up"):
        base[section] = base.get(section, {}) | {"seed": seed}
    base |= {"seed": seed} | ({"reward": {"kind": "random"}} if control else {})
    (home / "profile.yaml").write_text(yaml.safe_dump(base))
    report = home / "reports" / "chain-0001" / "summary.json"
    if not report.exists():
        environment = os.environ | {"RATCHET_HOME": str(home)}
        command = [
            str(Path(sys.executable).with_name("ratchet")),
            "demo",
            "--profile",
            str(home / "profile.yaml"),
        ]
        with (home / "demo.log").open("ab") as log:
            subprocess.run(command, env=environment, stdout=log, stderr=log, check=True)
    return facts(home, json.loads(report.read_text()))


def facts(home: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """Return the table row of a finished run; shares are in percent, memory in GiB."""
    record = PipelineRun(Home(home).runs, "chain-0001").record.model_dump()
    comparison = summary["decision"]["comparison"]
    [measured] = home.glob("checkpoints/chain-0001/*/measured.json")
    steps = [
        step["timing_s/step"]
        for step in json.loads(measured.read_text())
        if "timing_s/step" in step
    ]
    return {
        "tasks": comparison["before"]["tasks"],
        "before": 100 * comparison["before"]["share"],
        "after": 100 * comparison["after"]["share"],
        "gain": 100 * comparison["difference"],
        "low": 100 * comparison["difference_low"],
        "high": 100 * comparison["difference_high"],
        "p": comparison["p_better"],
        "promoted": summary["promoted"],
        "minutes": record["minutes"],
        "memory": record["peak_pss_gib"],
        "step": statistics.median(steps),
    }


HEAD = (
    (
        "| seed | n | before | after | gain (95 % interval) | p, one-sided | decision | minutes | "
        "peak PSS | s a step |\n"
    )
    + "|---" * 10
    + "|"
)


def line(seed: int, row: dict[str, Any]) -> str:
    gain = f"{row['gain']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})"
    decision = "promoted" if row["promoted"] else "refused"
    return (
        f"| {seed} | {row['tasks']} | {row['before']:.1f} % | {row['after']:.1f} % | {gain} | "
        f"{row['p']:.1g} | {decision} "
        f"| {row['minutes']:.1f} | {row['memory']:.1f} GiB | {row['step']:.1f} |"
    )


if __name__ == "__main__":
    main()
