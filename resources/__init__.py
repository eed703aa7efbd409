"""Connections to the outside, as Dagster resources.

These are storage, Ray, sandbox, model registry and run launcher. In: a profile. Out: objects that
assets use.
"""
