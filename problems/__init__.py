"""Problems as data.

In: a source (a benchmark's file, a hub dataset, the user's own, a generator). Out: verified,
deduplicated, decontaminated problems in parquet, and a reason for each removed one.
"""
