"""Decide whether a challenger replaces the champion: policy, checks, comparison, gate."""
