"""How hard problems are: measured pass rates, static features."""
