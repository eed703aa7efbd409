"""Multi-agent conversations about a problem, to correct programs over several turns.

The Generator writes a program, the Executor reports its test results, the Reviewer comments, and
the Generator writes a corrected program. In: problems, models, a sandbox. Out: conversations, for a
person to read (`ratchet solve`) or for verl to train on. The Executor sees only visible tests.
play.py alone decides who speaks when, for a batch of conversations at a time.
"""
