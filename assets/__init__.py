"""The asset graph: one thin file for each stage. It reads, calls the domain code, writes, and
attaches metadata for people.

In: the artifacts of earlier stages. Out: its own artifact, with metadata and blocking checks.
"""
