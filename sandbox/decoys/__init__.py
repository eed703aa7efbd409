"""Unittests rewritten: questions that a judge asks, and decoys that no solution passes."""
