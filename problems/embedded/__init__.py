"""The embedded family of problems: small functions composed of operations."""
