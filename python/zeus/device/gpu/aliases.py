"""Former names of the methods of GPUs."""

from __future__ import annotations

from zeus.device._alias import deprecated


class OldNames:
    """Mixin of `GPU` and `GPUs`. Each method warns once about its new name."""

    getName = deprecated("getName", "get_name")
    getPowerManagementLimitConstraints = deprecated(
        "getPowerManagementLimitConstraints", "get_power_management_limit_constraints"
    )
    setPowerManagementLimit = deprecated("setPowerManagementLimit", "set_power_management_limit")
    resetPowerManagementLimit = deprecated(
        "resetPowerManagementLimit", "reset_power_management_limit"
    )
    setPersistenceMode = deprecated("setPersistenceMode", "set_persistence_mode")
    getSupportedMemoryClocks = deprecated("getSupportedMemoryClocks", "get_supported_memory_clocks")
    setMemoryLockedClocks = deprecated("setMemoryLockedClocks", "set_memory_locked_clocks")
    resetMemoryLockedClocks = deprecated("resetMemoryLockedClocks", "reset_memory_locked_clocks")
    getSupportedGraphicsClocks = deprecated(
        "getSupportedGraphicsClocks", "get_supported_graphics_clocks"
    )
    setGpuLockedClocks = deprecated("setGpuLockedClocks", "set_gpu_locked_clocks")
    resetGpuLockedClocks = deprecated("resetGpuLockedClocks", "reset_gpu_locked_clocks")
    getAveragePowerUsage = deprecated("getAveragePowerUsage", "get_average_power_usage")
    getInstantPowerUsage = deprecated("getInstantPowerUsage", "get_instant_power_usage")
    getAverageMemoryPowerUsage = deprecated(
        "getAverageMemoryPowerUsage", "get_average_memory_power_usage"
    )
    supportsGetTotalEnergyConsumption = deprecated(
        "supportsGetTotalEnergyConsumption", "supports_get_total_energy_consumption"
    )
    getTotalEnergyConsumption = deprecated(
        "getTotalEnergyConsumption", "get_total_energy_consumption"
    )
    getGpuTemperature = deprecated("getGpuTemperature", "get_gpu_temperature")
