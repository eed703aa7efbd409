"""Generate completions with transformers, vLLM or an OpenAI-compatible endpoint, and cache them."""
