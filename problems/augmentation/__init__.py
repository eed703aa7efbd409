"""Derive problems from verified ones: another constant, inverted, composed.

In: verified training problems. Out: drafts, one file per kind; `augment` computes their tests in
the sandbox. A draft that would be wrong (an ambiguous name, an outdated example, references that
disagree) is rejected with a reason. The new problems are then verified like all others.
"""
