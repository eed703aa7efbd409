"""What Ratchet uses of verl beyond its documented interface: one file for each version of verl.

In: the installed verl. Out: the adapter's module for it, with hooks under names of our own. The
rest of `verl_jobs` imports verl's public classes itself, and touches no private name of verl
(tests/verl_jobs/test_conformance.py).
"""
