"""`ratchet gpu-acceptance`: train a tiny model by the GPU path, and say whether all of it works.

In: a device and a folder. Out: a page and a JSON file in the folder. drive.py runs the pipeline and
kills its trainer once, evidence.py reads what the run wrote, checks.py judges it.
"""
