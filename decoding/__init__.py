"""Sampling with transformers, written once: rollouts, scores and the gateway are loops over it.

In: a checkpoint folder, prompts as token ids, and for each row its limit, temperature, top-p, seed,
end tokens and stop words. Out: tokens with their log-probabilities, and how each row ended. The
same weights, prompt, settings and seed give the same tokens to all three: a row's random numbers
come from its seed and prompt alone (draws.py), and its neighbours in the batch can only change a
tie in the last bit. One `Batch` holds one model for its whole life.
"""
