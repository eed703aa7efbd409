"""Base models from GGUF files, llama.cpp's format.

In: `gguf:PATH` or `package:NAME`. Out: the shape of the model at once, or its Hugging Face folder
with dequantized weights.
"""
