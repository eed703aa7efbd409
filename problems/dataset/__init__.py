"""A dataset as a whole: its card, evidence, history, differences and RL parquet."""
