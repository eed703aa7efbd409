"""The asset graph: one file per stage, which reads, calls domain code, writes and adds metadata.

In: the artifacts of earlier stages. Out: the stage's artifact, with metadata and blocking checks.
"""
