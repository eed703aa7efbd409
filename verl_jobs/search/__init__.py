"""One trial of a hyperparameter search."""
