"""Dagster sensors: new checkpoints, regressions, new problems, stale scores, MLflow sync."""
