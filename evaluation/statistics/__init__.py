"""Tests, intervals and models that scores and decisions rest on."""
