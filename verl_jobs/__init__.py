"""Code that runs inside the training process; the only package that imports verl.

In: a start checkpoint, training and validation parquet, a `Training` config. Out: checkpoint
folders in Hugging Face format with a manifest, and a stream of metrics.
"""
