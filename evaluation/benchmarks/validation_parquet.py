"""The validation benchmark for training: a parquet for verl, with the prompts, tests and limits of
the scorecard.

In: the benchmark. Out: a file. `rewards` extracts and judges programs on both sides, so that the
curve and the scorecard agree on every task.
"""

from __future__ import annotations

from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark
from problems.dataset.rl_parquet import write_verl


def write_validation(benchmark: Benchmark, path: Path) -> None:
    """Write one row for each task, in the benchmark's order. Raises ValueError for a benchmark that
    training cannot prompt and judge in the same way.
    """
    if benchmark.completes:
        raise ValueError(
            f"{benchmark.name}: its completions continue starter code, and a reward judges whole "
            "programs: validate on another benchmark"
        )
    if benchmark.sampling.stop:
        raise ValueError(
            f"{benchmark.name}: training has no stop words: remove those of the benchmark's "
            "sampling"
        )
    prompts = [benchmark.prompt(problem) for problem in benchmark.problems]
    write_verl(benchmark.problems, path, prompts, data_source="validation")
