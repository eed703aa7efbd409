"""The partitions of the graph: checkpoints (a run's name), sources of problems, and the cells of
checkpoint × benchmark; and its pool.
"""

import dagster as dg

from resources.run_context import BENCHMARKS, CHECKPOINTS

checkpoints = dg.DynamicPartitionsDefinition(name=CHECKPOINTS)
sources = dg.DynamicPartitionsDefinition(name="sources")
CHECKPOINT, BENCHMARK = "checkpoint", "benchmark"  # dimensions of a cell
cells = dg.MultiPartitionsDefinition(
    {CHECKPOINT: checkpoints, BENCHMARK: dg.DynamicPartitionsDefinition(name=BENCHMARKS)}
)

# The pool of assets that train: as many runs at once as `dagster.yaml` says, the others wait.
TRAINING = "training"
