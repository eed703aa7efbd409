"""What an answer is worth.

In: a model's answer and the problem it answers. Out: a `Score` in [-1, 1] with its components, or no score when the judge itself failed.
Extraction and scoring live here for training and evaluation alike, so that a curve and a scorecard never disagree.
"""
