"""Choose which problems each training step draws."""
