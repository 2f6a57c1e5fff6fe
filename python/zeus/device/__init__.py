"""The devices of this machine: reading them, and setting their knobs.

    from zeus.device import get_gpus

    gpus = get_gpus()
    print(gpus.get_name(0), gpus[0].uuid)
    gpus.set_power_management_limit(0, 150_000)  # milliwatts

Units are milliwatts, millijoules, megahertz and degrees Celsius. Whatever a program sets is put
back when it ends, in whatever way it ends; after a SIGKILL by the next program that looks for
devices, or by ``zeus knobs restore``.
"""

from __future__ import annotations

from zeus.device.cpu import get_cpus
from zeus.device.gpu import get_gpus
from zeus.device.soc import get_soc

__all__ = ["get_cpus", "get_gpus", "get_soc"]
