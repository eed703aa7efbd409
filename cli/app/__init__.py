"""The Typer application: its commands and the options that they share."""
