"""What is kept.

In: a folder that somebody has filled, and what it was made from. Out: an `Artifact` that is whole or absent, addressed by content, with a manifest
(the passport) from which one walk leads back to the raw problems.
"""
