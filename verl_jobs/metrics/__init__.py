"""Metrics of a training and of the machines it runs on."""
