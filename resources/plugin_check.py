"""Test a user's own parts of a training before anything starts.

In: a `Training`. Out: a line per part with the result of its dry step, or PluginError. The test
runs in its own process, because the parts are the user's code, and verl is heavy to import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from verl_jobs.config.environment import environment
from verl_jobs.config.references import PluginError
from verl_jobs.config.training import Training

LONGEST_S = 300.0


def check_plugins(training: Training, *, unverified: bool) -> list[str]:
    """Run the dry step of every part; return nothing where no part is the user's own.

    unverified: whether a reward may train that has not passed the exploit battery.
    Raises PluginError: what is wrong with the first part that cannot be used, and how to fix it.
    """
    if not training.plugins.references:
        return []
    if training.plugins.reward_manager and not unverified:
        raise PluginError(
            f"{training.plugins.reward_manager}: the exploit battery cannot try a reward "
            "manager: write a reward file (`ratchet reward new`), or "
            "train with --unverified"
        )
    training.plugins.hashes()  # reports a missing file at once
    on_cpu = training.model_copy(update={"engine": "hf"})
    variables = (
        os.environ | environment(on_cpu) | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    )
    command = [sys.executable, "-m", "verl_jobs.plugins.plugin_check"]
    try:
        run = subprocess.run(
            command,
            input=training.model_dump_json(),
            env=variables,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PluginError(
            f"{', '.join(training.plugins.references.values())}: no dry step within "
            f"{LONGEST_S:.0f} s: look for what waits"
        ) from error
    if run.returncode == 2 and "error: " in run.stderr:
        raise PluginError(run.stderr.rpartition("error: ")[2].strip())
    last = run.stdout.rstrip().rpartition("\n")[2]
    if run.returncode or not last.startswith("["):  # killed, or ended by the user's own code
        raise PluginError(
            f"{', '.join(training.plugins.references.values())}: the trial ended with code "
            f"{run.returncode}: {run.stderr.strip()[-1000:]}"
        )
    return [str(line) for line in json.loads(last)]
