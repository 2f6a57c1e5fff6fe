"""Clocks of pipelines, and the planner."""
