"""The loop around training."""
