"""Find what the arguments of a command name: runs, scorecards, benchmarks."""
