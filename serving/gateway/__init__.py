"""The gateway: an OpenAI-compatible endpoint in front of the versions of the ledger.

In: the home, its ledger, a router. Out: answers over HTTP, and one observation for each of them.
"""
