"""Estimates of a training's memory, placement and time before it starts."""
