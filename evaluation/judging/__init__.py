"""Judge completions in the sandbox by the rules of the published harnesses."""
