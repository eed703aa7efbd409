"""The outside world: storage, Ray, sandbox, model registry, run launcher, as Dagster resources.

In: a profile. Out: handles that assets use. Nothing here decides; it connects.
"""
