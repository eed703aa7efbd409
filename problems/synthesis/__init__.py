"""Problems that a language model proposes and solves, through any OpenAI-compatible endpoint.

In: snippets of verified problems as seeds, an endpoint. Out: problems with tests whose outputs at
least two independent programs agree on, and a reason for every rejected proposal. Replies are
journaled, so a pass that was killed repeats no request.
"""
