"""Selection of the problems of each training step."""
