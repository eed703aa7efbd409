"""User-defined losses, advantages, samplers and agent loops, and their dry run."""
