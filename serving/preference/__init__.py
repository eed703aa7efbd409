"""The page on which people choose between two completions.

In: a folder of pairs (evaluation/preference/pairs.py). Out: choices, appended to the folder's
`choices.jsonl` in the form that `rewards.choices` reads.
"""
