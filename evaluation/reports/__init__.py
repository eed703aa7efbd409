"""Reports, plots and tables about scorecards and decisions."""
