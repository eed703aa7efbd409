"""Content-addressed storage of everything that a run makes.

In: a filled folder, and what it was made from. Out: an `Artifact`, which is complete or absent,
addressed by content, with a manifest from which a walk leads back to the raw problems.
"""
