"""What each algorithm makes of the same warm model: whole chains, a home an algorithm and seed, 30
steps on the embedded profile.

    python -m measurements.algorithms      six algorithms, three seeds: hours
    python -m measurements.algorithms --seeds 21 --algorithms grpo     one of the chains
    python -m measurements.algorithms --profile small --steps 2        to see the script work

All algorithms of a seed have its problems, its warm model and its draws of batches in common: the
first chain makes them, the others find them. It resumes: a chain that has ended is read,
not run again; one that was killed continues. Prints a table: held-out pass@1 before and after,
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
SHARED = (
    "datasets",
    "journals",
    "batteries",
    "checkpoints/base_model",
    "checkpoints/sft_checkpoint",
)  # of a seed, whatever the algorithm
SEEDS = (21, 22, 23)  # none was looked at while defaults were chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/algorithms"))
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--read", action="store_true", help="Only what has ended.")
    given = parser.parse_args()
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {name: [] for name in given.algorithms}
    for seed in given.seeds:
        for name in given.algorithms:
            home = (given.folder / f"{given.profile}-{given.steps}-{seed}-{name}").absolute()
            if not given.read:
                train(home, name, seed, given.profile, given.steps)
            if (report := home / "reports" / "chain-0001" / "summary.json").exists():
                found[name].append((seed, facts(home, json.loads(report.read_text()))))
    print("| algorithm " + HEAD.replace("\n", "\n|---"))
    for name, rows in found.items():
        for seed, row in rows:
            print(f"| {name} {line(seed, row)}")
    print(
        "\n| algorithm | seeds | mean gain | lowest | highest | seconds a step |\n"
        + "|---" * 6
        + "|"
    )
    for name, rows in found.items():
        if rows:
            gains, steps = [row["gain"] for _, row in rows], [row["step"] for _, row in rows]
            print(
                f"| {name} | {len(rows)} | {statistics.mean(gains):+.1f} | {min(gains):+.1f} "
                f"| {max(gains):+.1f} | {statistics.median(steps):.1f} |"
            )


def train(home: Path, algorithm: str, seed: int, profile: str, steps: int) -> None:
    """The first chain of this home to its decision, unless that has been done."""
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
    """What an ended chain of the same seed made before its training, published artifacts all of
    them.
    """
    beside = home.with_name(f".{home.name}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    ended = [
        other
        for other in sorted(home.parent.glob(pattern))
        if (other / "reports" / "chain-0001" / "summary.json").exists()
    ]
    for part in SHARED if ended else ():
        shutil.copytree(ended[0] / part, beside / part)
    beside.rename(home)


if __name__ == "__main__":
    main()
