"""Gain of each RL algorithm from the same warmed-up model, measured with complete pipeline runs.

    python -m measurements.algorithms      six algorithms, three seeds, 30 steps: hours
    python -m measurements.algorithms --seeds 21 --algorithms grpo     one of the runs
    python -m measurements.algorithms --profile small --steps 2        a short trial run

Each algorithm and seed has its own home. All algorithms of a seed share its problems, its warmed-up
model and its order of batches: the first run creates them, the others copy them. A repeated command
reads finished runs and resumes interrupted ones. Prints a table: held-out pass@1 before and after,
interval of the gain, p-value, seconds a step, peak memory; then each algorithm's mean gain over its
seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from measurements.learning import HEAD, facts, line

ALGORITHMS = ("grpo", "rloo", "ppo", "reinforce_plus_plus", "remax", "dapo")
# Artifacts that all algorithms of a seed share.
SHARED = (
    "datasets",
    "journals",
    "batteries",
    "checkpoints/base_model",
    "checkpoints/sft_checkpoint",
)
SEEDS = (21, 22, 23)  # no default was selected on these


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/algorithms"))
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--read", action="store_true", help="read finished runs, train nothing")
    arguments = parser.parse_args()
    settings = f"{arguments.profile}-{arguments.steps}"
    results: dict[str, list[tuple[int, dict[str, Any]]]]
    results = {name: [] for name in arguments.algorithms}
    for seed in arguments.seeds:
        for name in arguments.algorithms:
            home = (arguments.folder / f"{settings}-{seed}-{name}").absolute()
            if not arguments.read:
                train(home, name, seed, arguments.profile, arguments.steps)
            if (report := home / "reports" / "chain-0001" / "summary.json").exists():
                results[name].append((seed, facts(home, json.loads(report.read_text()))))
    print("| algorithm " + HEAD.replace("\n", "\n|---"))
    for name, rows in results.items():
        for seed, row in rows:
            print(f"| {name} {line(seed, row)}")
    print(
        "\n| algorithm | seeds | mean gain | lowest | highest | seconds a step |\n"
        + "|---" * 6
        + "|"
    )
    for name, rows in results.items():
        if rows:
            gains, steps = [row["gain"] for _, row in rows], [row["step"] for _, row in rows]
            print(
                f"| {name} | {len(rows)} | {statistics.mean(gains):+.1f} | {min(gains):+.1f} "
                f"| {max(gains):+.1f} | {statistics.median(steps):.1f} |"
            )


def train(home: Path, algorithm: str, seed: int, profile: str, steps: int) -> None:
    """Run this home's first pipeline run to its decision, unless it has finished."""
    if (home / "reports" / "chain-0001" / "summary.json").exists():
        return
    if not home.exists():
        inherit(home, f"*-{steps}-{seed}-*")
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
    base |= {
        "seed": seed,
        "training": base.get("training", {}) | {"algorithm": algorithm, "steps": steps},
    }
    (home / "profile.yaml").write_text(yaml.safe_dump(base))
    command = [
        str(Path(sys.executable).with_name("ratchet")),
        "demo",
        "--profile",
        str(home / "profile.yaml"),
    ]
    with (home / "demo.log").open("ab") as log:
        subprocess.run(
            command,
            env=os.environ | {"RATCHET_HOME": str(home)},
            stdout=log,
            stderr=log,
            check=True,
        )


def inherit(home: Path, pattern: str) -> None:
    """Create a home with the artifacts from before training of a finished run of the same seed."""
    temporary = home.with_name(f".{home.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    finished = [
        other
        for other in sorted(home.parent.glob(pattern))
        if (other / "reports" / "chain-0001" / "summary.json").exists()
    ]
    for part in SHARED if finished else ():
        shutil.copytree(finished[0] / part, temporary / part)
    temporary.rename(home)


if __name__ == "__main__":
    main()
