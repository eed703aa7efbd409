"""Check user plugins before a training starts.

Each plugin is loaded, its signature is checked, and it runs one step without Ray. `python -m
verl_jobs.plugins.plugin_check` reads a `Training` as JSON from stdin. Its last output line is a
JSON list with one sentence per plugin. It exits with status 2 and the error of the first plugin
that cannot be used. It is a separate process because plugins are user code, and because verl reads
the environment at import.

One real step of verl takes 90 s on two cores, most of it the start of Ray. The dry steps of all six
kinds take 10 s of CPU, and also check masks, gradients and the state after a resume.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from verl_jobs.config.references import PluginError, load
from verl_jobs.config.training import Training
from verl_jobs.plugins.dry_steps import STEPS
from verl_jobs.plugins.tiny_training import TinyTraining


def check_all(training: Training) -> list[str]:
    """Return one line per plugin with the result of its step.

    Raises PluginError for the first failure.
    """
    with tempfile.TemporaryDirectory(prefix="ratchet-trial-") as folder:
        tiny_training = TinyTraining(training, Path(folder))
        return [
            f"{kind} {reference}: {STEPS[kind](load(reference), reference, tiny_training)}"
            for kind, reference in training.plugins.references.items()
        ]


def main() -> None:
    try:
        lines = check_all(Training.model_validate_json(sys.stdin.read()))
    except PluginError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"\n{json.dumps(lines)}")


if __name__ == "__main__":
    main()
