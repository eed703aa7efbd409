"""Tries a user's parts before anything starts: each is loaded, is asked for what verl will give it, and does one step without Ray.

`python -m verl_jobs.plugins.plugin_check` reads a `Training` as JSON from stdin; its last line is a JSON list, a sentence a part; it exits 2 with the error of the
first that cannot be used. It is a process of its own, for the parts are their user's code, and verl reads the environment when it is imported.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from verl_jobs.config.references import PluginError, load
from verl_jobs.config.training import Training
from verl_jobs.plugins.bench import Bench
from verl_jobs.plugins.dry_steps import STEPS


def try_all(training: Training) -> list[str]:
    """A line a part, what its step gave. Raises PluginError for the first that cannot be used."""
    with tempfile.TemporaryDirectory(prefix="ratchet-trial-") as folder:
        bench = Bench(training, Path(folder))
        return [
            f"{kind} {reference}: {STEPS[kind](load(reference), reference, bench)}"
            for kind, reference in training.plugins.named.items()
        ]


def main() -> None:
    try:
        lines = try_all(Training.model_validate_json(sys.stdin.read()))
    except PluginError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"\n{json.dumps(lines)}")


if __name__ == "__main__":
    main()
