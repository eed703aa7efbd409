"""What runs inside the training process.

In: a start checkpoint, training and validation parquet, a `Training` config. Out: checkpoint folders in Hugging Face format with a manifest,
and a stream of metrics. The only room that imports verl.
"""
