"""Tables and phrases that commands print."""
