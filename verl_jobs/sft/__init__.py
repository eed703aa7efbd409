"""Supervised fine-tuning before reinforcement learning, and the models it starts from."""
