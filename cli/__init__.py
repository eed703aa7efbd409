"""The command line `ratchet`: parse arguments, call the packages below, print the result."""
