"""A user's own losses, advantages, samplers and agent loops, and their dry run."""
