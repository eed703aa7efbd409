"""Readers of rows: of files and of the hub, and of the forms that tests and statements have."""
