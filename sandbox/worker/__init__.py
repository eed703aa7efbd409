"""The worker: judges one job at a time in its slots, outside the program's processes."""
