"""Power and temperature over time."""
