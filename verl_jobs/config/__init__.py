"""Training settings, and their translation into Hydra overrides."""
