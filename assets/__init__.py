"""The graph: one thin file a stage; it reads, calls the domain code, writes, and attaches what a person wants to look at.

In: the artifacts of earlier stages. Out: an artifact of its own, with its metadata and its blocking checks.
"""
