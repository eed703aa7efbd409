"""Problems that a language model proposes and solves, through any OpenAI-compatible endpoint.

In: snippets of verified problems as seeds, an endpoint. Out: problems with tests whose outputs at least two independent programs agree on, and a
reason for every proposal that came to nothing. Replies are journaled, so that a pass that was killed asks nothing twice.
"""
