"""The partitions of the graph: checkpoints (a run's name), sources of problems, and the cells of
checkpoint × benchmark.
"""

import dagster as dg

from resources.run_context import BENCHMARKS, CHECKPOINTS

checkpoints = dg.DynamicPartitionsDefinition(name=CHECKPOINTS)
sources = dg.DynamicPartitionsDefinition(name="sources")
CHECKPOINT, BENCHMARK = "checkpoint", "benchmark"  # dimensions of a cell
cells = dg.MultiPartitionsDefinition(
    {CHECKPOINT: checkpoints, BENCHMARK: dg.DynamicPartitionsDefinition(name=BENCHMARKS)}
)

DATA, MODELS, EVALUATION, PROMOTION = "data", "models", "evaluation", "promotion"
OWNERS = {
    DATA: ["team:data"],
    MODELS: ["team:training"],
    EVALUATION: ["team:evaluation"],
    PROMOTION: ["team:evaluation"],
}
