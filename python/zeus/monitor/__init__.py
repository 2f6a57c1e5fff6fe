"""Measuring time and energy of whatever a program does."""

from __future__ import annotations

from zeus.monitor.energy import DeviceEnergy, Measurement, Window, ZeusMonitor

__all__ = ["DeviceEnergy", "Measurement", "Window", "ZeusMonitor"]
