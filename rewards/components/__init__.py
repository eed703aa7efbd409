"""Components of the reward: one file for each, with a `COMPONENT`.

A file's name is the component's key in `reward.weights`.
"""
