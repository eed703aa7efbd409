"""The known sources of problems, each in a file of its own with a `Source`."""
