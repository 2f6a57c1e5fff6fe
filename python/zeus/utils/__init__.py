"""Utilities for training programs."""
