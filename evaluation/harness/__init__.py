"""Verdicts of the published harnesses, decided in our sandbox: the same verdict task by task, and no hack passes.

In: a benchmark's own rows and completions. Out: what upstream would say of each. What a harness compares, tolerates and times is taken from its
source, at the version that each file names; docs/explanation/benchmarks.md lists where a verdict differs and why.
"""
