"""Continuous batching on transformers: rows join and leave a batch between two tokens.

In: requests, as token ids. Out: pieces of text while they are generated. transformers has a
continuous batching of its own; it has neither seeds nor stop strings for each request, and on a CPU
it takes several times as long (docs/measurements/serving.md).
"""
