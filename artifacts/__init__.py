"""Content-addressed storage of everything that a run makes.

In: a filled folder and its inputs. Out: an `Artifact`, which is complete or absent, addressed by
content. Its manifest names its inputs, back to the raw problems.
"""
