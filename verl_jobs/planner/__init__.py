"""Plan memory, placement and time of a training before it starts."""
