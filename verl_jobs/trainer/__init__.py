"""Our parts in and around verl's trainer: entry point, rewards, checkpoints, lease."""
