"""Components of the reward: one file for each, with a `Component`.

A file's name is the component's key in `reward.weights`.
"""
