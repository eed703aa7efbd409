"""Start time of commands and of Dagster's definitions: `python -m measurements.answering [rounds]`.

Prints medians of wall and CPU seconds.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

COMMANDS = {
    "ratchet --help": ["-m", "cli.main", "--help"],
    "ratchet status": ["-m", "cli.main", "status"],
    "ratchet judge, empty input": ["-m", "cli.main", "judge"],
    "definitions load": ["-c", "import pipelines.definitions"],
}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("| | wall s | CPU s |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        for name, arguments in COMMANDS.items():
            seconds(arguments, home)  # warms the file cache
            times = [seconds(arguments, home) for _ in range(rounds)]
            wall, cpu = (statistics.median(each[i] for each in times) for i in (0, 1))
            print(f"| {name} | {wall:.2f} | {cpu:.2f} |", flush=True)


def seconds(arguments: list[str], home: str) -> tuple[float, float]:
    """Return wall and CPU seconds of one start of the interpreter with these arguments."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = os.environ | {"RATCHET_HOME": home}
    subprocess.run(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.monotonic() - began,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


if __name__ == "__main__":
    main()
