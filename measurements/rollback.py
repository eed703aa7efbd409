"""Seconds of a rollback with loaded modules: the ledger, then MLflow's aliases. Prints a table.

`python -m measurements.rollback [VERSIONS]` creates a temporary home with 20 versions, or VERSIONS,
and registers them in MLflow first. CPU seconds are printed too, because other work may run.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console

from cli.rollback import rollback
from resources.registry.ledger import Ledger
from resources.registry.mlflow import Registry
from resources.settings import Settings

ROLLBACKS = 5


def main(versions: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ratchet-rollback-") as home:
        os.environ |= {"RATCHET_HOME": home, "RATCHET_PROFILE": "small"}
        ledger = Ledger(Path(home) / "promotions.db")
        for i in range(versions):
            against = f"c{i - 1}" if i else None
            ledger.append(
                "promote",
                checkpoint=f"c{i}",
                checkpoint_hash=f"c{i}",
                path="",
                decision={"reasons": []},
                chain=f"c{i}",
                against=against,
            )
        Registry(Path(home)).sync(ledger)  # also imports MLflow
        wall, cpu = [], []
        for _ in range(ROLLBACKS):
            wall_start, cpu_start = time.monotonic(), time.process_time()
            rollback(None, "", Settings.read(), Console(file=StringIO()))
            wall.append(time.monotonic() - wall_start)
            cpu.append(time.process_time() - cpu_start)
    print(
        "| versions | rollback, s (median, worst) | CPU s (median, worst) | load |\n"
        "|---|---|---|---|"
    )
    figures = " | ".join(
        f"{statistics.median(seconds):.2f}, {max(seconds):.2f}" for seconds in (wall, cpu)
    )
    print(f"| {versions} | {figures} | {os.getloadavg()[0]:.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
