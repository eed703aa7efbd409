"""How a benchmark prompts a model: one file for each benchmark.

In: problems of one schema. Out: a `Benchmark`, or `NotMeasured` with the reason, so that a report
can list the benchmarks that it lacks. A new benchmark is one file here with a `Published`
(published.py); the registry finds it.
"""

from evaluation.benchmarks.benchmark import Benchmark, NotMeasured, from_problems
from evaluation.benchmarks.embedded import heldout, regression, validation

__all__ = ["Benchmark", "NotMeasured", "from_problems", "heldout", "regression", "validation"]
