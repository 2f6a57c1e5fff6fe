"""Emissions and cost."""
