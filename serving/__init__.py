"""The gateway in front of models.

In: the promotion record (which version is champion), the record of releases, and an engine. Out: an
OpenAI-compatible endpoint, on the loopback unless there are API keys, and a record of its answers.
"""
