"""What the graph is cut into: a partition a checkpoint (a chain's name), a partition a source of problems."""

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
