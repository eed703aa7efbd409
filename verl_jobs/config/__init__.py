"""Training settings and the Hydra overrides made of them."""
