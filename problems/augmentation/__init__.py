"""Problems made of verified ones: renamed, re-worded, with another constant, inverted, composed of two.

In: verified problems of the training part. Out: drafts, a file a kind; `augment` computes their tests in the sandbox. A draft that would not hold
(an ambiguous name, an example that would be wrong, references that disagree) is refused with its reason. Verification then judges what was made.
"""
