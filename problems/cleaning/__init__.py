"""Remove what training must not see: contamination, duplicates, secrets, low quality."""
