"""The partitions of the graph: one for each checkpoint (a run's name), one for each source of
problems.
"""

import dagster as dg

from resources.run_context import CHECKPOINTS

checkpoints = dg.DynamicPartitionsDefinition(name=CHECKPOINTS)
sources = dg.DynamicPartitionsDefinition(name="sources")

DATA, MODELS, EVALUATION, PROMOTION = "data", "models", "evaluation", "promotion"
OWNERS = {
    DATA: ["team:data"],
    MODELS: ["team:training"],
    EVALUATION: ["team:evaluation"],
    PROMOTION: ["team:evaluation"],
}
