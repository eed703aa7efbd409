"""The gateway in front of models.

In: the promotion record (which version is champion) and an engine. Out: an OpenAI-compatible
endpoint on 127.0.0.1 that always serves the champion.
"""
