"""The shapes of rows in which public datasets are published, each in a file of its own.

In: a row of a file or of the hub, without any mapping. Out: the same row in the columns of the
schema. `registry.py` recognizes a row by its keys and the types of their values.
"""
