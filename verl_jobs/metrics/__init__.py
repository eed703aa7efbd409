"""Figures of a training and of the machines that it runs on."""
