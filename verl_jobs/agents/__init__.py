"""Several who speak about one problem: the Generator writes, the Executor reports, the Reviewer comments, the Generator mends.

In: problems, who writes, a sandbox. Out: conversations, for a person to read (`ratchet solve`) or for verl to train on. The Executor sees visible
tests alone. Who speaks when is decided in one place, play.py, a batch of conversations a turn.
"""
