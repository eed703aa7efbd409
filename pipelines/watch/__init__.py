"""The live view of a pipeline run in a terminal, its reward curve and its summary."""
