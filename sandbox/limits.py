"""Limits of a program, and their bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sandbox.reading import Key, is_number, read_keys

# How many processes may compete for a core before the wall clock stops a program that only
# computes.
LOAD = 3.0


@dataclass(frozen=True)
class Limits:
    """Limits of a program. They count all of its processes together.

    Times are per test. Output is per run of the program: a run is all tests of a job, or one test
    of style `stdio`.
    The `total_*` limits cover the program over all its tests; None means no limit beyond the one of
    each test. Memory, processes and open files are limited at every moment, so they need no total.
    CPU time limits work and does not depend on how busy the machine is. The wall clock limits
    programs that wait, and leaves room for a busy machine.
    Where no cgroup is writable, usage is read from /proc, about a hundred times a second.
    docs/explanation/sandbox.md lists what is enforced on which isolation level.
    """

    wall_s: float = 9.0
    cpu_s: float = 3.0
    memory_mb: int = 256
    output_kb: int = 1024  # stdout and stderr
    processes: int = 64  # threads count too
    files: int = 256  # open at the same time
    total_wall_s: float | None = None
    total_cpu_s: float | None = None
    total_output_kb: int | None = None

    @classmethod
    def of_work(cls, cpu_s: float, memory_mb: int = 256) -> Limits:
        """Return limits for a program that computes and does not wait. The wall clock allows LOAD
        times the CPU time, so that the CPU time decides.
        """
        return cls(wall_s=LOAD * cpu_s, cpu_s=cpu_s, memory_mb=memory_mb)

    @classmethod
    def read(cls, record: Any) -> Limits:
        """Return the limits of a record; null leaves a default. Raises Invalid for an unknown key,
        and for a value that is no number above 0 or exceeds MAX_LIMITS.
        """
        if isinstance(record, Limits):
            record = vars(record)
        values: dict[str, Any] = {
            name: float(value) if name.endswith("_s") else int(value)
            for name, value in read_keys(record, LIMIT_KEYS).items()
        }
        return cls(**values)


# A day for a test and a week for a program, 1 TiB, 1 GiB of output, which its owner holds in memory
MAX_LIMITS: Mapping[str, float] = {
    "wall_s": 86_400, "cpu_s": 86_400, "memory_mb": 2**20, "output_kb": 2**20,
    "processes": 32_768, "files": 65_536,
    "total_wall_s": 604_800, "total_cpu_s": 604_800, "total_output_kb": 2**20,
}  # fmt: skip


def _fits(name: str) -> Callable[[Any], bool]:
    seconds, most = name.endswith("_s"), MAX_LIMITS[name]
    return lambda value: is_number(value) and 0 < value <= most and (seconds or int(value) == value)


LIMIT_KEYS = {
    field.name: Key(
        f"a {'' if field.name.endswith('_s') else 'whole '}number above 0, "
        f"at most {MAX_LIMITS[field.name]:,}",
        _fits(field.name),
    )
    for field in fields(Limits)
}
