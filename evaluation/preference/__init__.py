"""Pairs of completions that people compare."""
