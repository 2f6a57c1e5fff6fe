"""A script for the reference implementation, from its documentation. It runs unchanged on ours.

It uses every public name that users of it rely on; reference_api_test.py runs it on a simulated node
of four equal GPUs, with a server for jobs and pipelines, a push gateway and a daemon.
"""

import json
import sys
import time
import warnings
from pathlib import Path

from zeus.device import get_cpus, get_gpus, get_soc
from zeus.monitor import Measurement, PowerMonitor, TemperatureMonitor, ZeusMonitor
from zeus.optimizer.power_limit import (
    Energy,
    GlobalPowerLimitOptimizer,
    HFGlobalPowerLimitOptimizer,
    MaxSlowdownConstraint,
    OptimumSelector,
    PowerLimitMeasurement,
    Time,
    ZeusCost,
)


def energy_monitor() -> None:
    monitor = ZeusMonitor(gpu_indices=[0, 1], approx_instant_energy=True, log_file=Path("log.csv"))
    assert monitor.gpu_indices == [0, 1]
    monitor.begin_window("epoch")
    for step in range(3):
        monitor.begin_window("step", sync_execution=False)
        time.sleep(0.05)
        result = monitor.end_window("step", sync_execution=False)
        assert isinstance(result, Measurement)
    monitor.begin_window("forgotten")
    monitor.begin_window("forgotten", restart=True)
    monitor.end_window("forgotten", cancel=True)
    result = monitor.end_window("epoch")
    assert set(result.gpu_energy) == {0, 1}
    assert result.time > 0.15
    assert result.total_energy > 0
    for energy in (result.cpu_energy, result.dram_energy):
        assert energy is None or all(joules >= 0 for joules in energy.values())
    assert result.soc_energy is None
    monitor.begin_window("open")
    monitor.reset_windows()
    try:
        monitor.end_window("open")
        raise AssertionError("the window was forgotten")
    except ValueError:
        pass
    rows = Path("log.csv").read_text().splitlines()
    assert rows[0] == "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy"
    assert [row.split(",")[1] for row in rows[1:]] == ["step", "step", "step", "epoch"]


def replayed_monitor() -> None:
    from zeus.utils.testing import ReplayZeusMonitor

    monitor = ReplayZeusMonitor(gpu_indices=None, approx_instant_energy=False, log_file="log.csv",
                                ignore_sync_execution=True, match_window_name=True)
    assert monitor.gpu_indices == [0, 1]
    monitor.begin_window("step")
    first = monitor.end_window("step")
    logged = Path("log.csv").read_text().splitlines()[1].split(",")
    assert first.time == float(logged[2]) and first.gpu_energy[0] == float(logged[3])
    monitor.begin_window("another")
    try:
        monitor.end_window("another")
        raise AssertionError("the name does not match")
    except RuntimeError:
        pass


def power_and_temperature() -> None:
    from zeus.monitor.power import PowerDomain

    began = time.time()
    power = PowerMonitor(gpu_indices=[0, 1], update_period=0.1, max_samples_per_gpu=1000)
    temperature = TemperatureMonitor(gpu_indices=[0], update_period=0.2, max_samples_per_gpu=100)
    time.sleep(1.0)
    now = time.time()
    watts = power.get_power()
    assert watts is not None and set(watts) == {0, 1} and watts[0] > 0
    assert power.get_power(time=now, power_domain=PowerDomain.DEVICE_INSTANT) is not None
    joules = power.get_energy(began, now)
    assert joules is not None and joules[0] > 0
    timeline = power.get_power_timeline(PowerDomain.DEVICE_INSTANT, gpu_index=0,
                                        start_time=began, end_time=now)
    assert timeline[0] and all(watts > 0 for _, watts in timeline[0])
    assert PowerDomain.DEVICE_INSTANT in power.get_all_power_timelines()
    assert PowerDomain("device_average") is PowerDomain.DEVICE_AVERAGE
    assert PowerDomain("memory_average") is PowerDomain.MEMORY_AVERAGE
    celsius = temperature.get_temperature()
    assert celsius is not None and 10 < celsius[0] < 110
    assert temperature.get_temperature_timeline(gpu_index=0)[0]
    power.stop()
    temperature.stop()


def gpus_by_today_names() -> None:
    from zeus.device.gpu import ZeusGPUNotSupportedError

    gpus = get_gpus(ensure_homogeneous=True)
    assert len(gpus) == 4
    assert "A100" in gpus.get_name(0)
    least, most = gpus.get_power_management_limit_constraints(0)
    before = gpus.get_power_management_limit(0)
    gpus.set_power_management_limit(0, least, block=True)
    assert gpus.get_power_management_limit(0) == least
    gpus.reset_power_management_limit(0)
    assert least < gpus.get_power_management_limit(0) <= most
    gpus.set_power_management_limit(0, before)
    gpus.set_persistence_mode(0, enabled=True)
    assert gpus.get_persistence_mode(0) in (True, False)
    memory = max(gpus.get_supported_memory_clocks(0))
    graphics = gpus.get_supported_graphics_clocks(0, memory)
    assert gpus.get_supported_graphics_clocks(0)
    gpus.set_memory_locked_clocks(0, memory, memory)
    gpus.reset_memory_locked_clocks(0)
    gpus.set_gpu_locked_clocks(0, min(graphics), max(graphics))
    gpus.reset_gpu_locked_clocks(0)
    gpus.reset_locked_clocks(0)
    assert gpus.get_instant_power_usage(0) > 10_000
    assert gpus.supports_get_total_energy_consumption(0)
    assert gpus.get_total_energy_consumption(0) > 0
    assert 10 < gpus.get_gpu_temperature(0) < 110
    for reading in (gpus.get_average_power_usage, gpus.get_average_memory_power_usage):
        try:
            assert reading(0) >= 0
        except ZeusGPUNotSupportedError:
            pass
    assert gpus.gpus[0].supports_nonblocking_setters in (True, False)


def gpus_by_old_names() -> None:
    """Still callable; each warns once."""
    gpus = get_gpus()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "A100" in gpus.getName(0)
        least, _ = gpus.getPowerManagementLimitConstraints(0)
        gpus.setPowerManagementLimit(0, least)
        gpus.resetPowerManagementLimit(0)
        gpus.setPersistenceMode(0, True)
        memory = max(gpus.getSupportedMemoryClocks(0))
        gpus.setMemoryLockedClocks(0, memory, memory)
        gpus.resetMemoryLockedClocks(0)
        graphics = gpus.getSupportedGraphicsClocks(0, memory)
        gpus.setGpuLockedClocks(0, min(graphics), max(graphics))
        gpus.resetGpuLockedClocks(0)
        assert gpus.getInstantPowerUsage(0) > 0
        assert gpus.supportsGetTotalEnergyConsumption(0)
        assert gpus.getTotalEnergyConsumption(0) > 0
        assert gpus.getGpuTemperature(0) > 0
        assert callable(gpus.getAveragePowerUsage) and callable(gpus.getAverageMemoryPowerUsage)


def cpus_and_boards() -> None:
    from zeus.device.cpu import ZeusCPUInitError
    from zeus.device.cpu.common import CPU, CpuDramMeasurement
    from zeus.device.soc import ZeusSoCInitError
    from zeus.device.soc.common import SoC, SoCMeasurement

    try:
        cpus = get_cpus()
        assert cpus.get_total_energy_consumption(0).cpu_mj >= 0
        assert cpus.supports_get_dram_energy_consumption(0) in (True, False)
        assert cpus.getTotalEnergyConsumption(0) and callable(cpus.supportsGetDramEnergyConsumption)
    except ZeusCPUInitError:
        pass  # No counters on this machine.
    assert CPU.getTotalEnergyConsumption and CPU.supportsGetDramEnergyConsumption
    spent = CpuDramMeasurement(cpu_mj=3.0, dram_mj=1.0) - CpuDramMeasurement(cpu_mj=1.0, dram_mj=0.5)
    assert (spent / 2).cpu_mj == 1.0 and spent.dram_mj == 0.5
    try:
        soc = get_soc()
        assert isinstance(soc.get_available_metrics(), set)
    except ZeusSoCInitError:
        pass
    for name in ("getAvailableMetrics", "getTotalEnergyConsumption", "beginWindow", "endWindow"):
        assert callable(getattr(SoC, name))
    assert callable(SoCMeasurement.zeroAllFields)


class EarlyDecision(OptimumSelector):
    def select(self, measurements: "list[PowerLimitMeasurement]") -> int:
        return min(measurements, key=lambda one: one.energy * one.time).power_limit


def power_limit() -> None:
    profile = Path("profile.json")
    measurements = [{"power_limit": limit, "energy": 900.0 + limit, "time": 4000.0 / limit}
                    for limit in (400, 300, 200, 100)]
    profile.write_text(json.dumps({"measurements": measurements}, indent=4))
    choices = {}
    for selector in (Energy(), Time(), ZeusCost(eta_knob=0.5, world_size=1),
                     MaxSlowdownConstraint(factor=1.4), EarlyDecision()):
        monitor = ZeusMonitor(gpu_indices=[0])
        optimizer = GlobalPowerLimitOptimizer(monitor, optimum_selector=selector, wait_steps=1,
                                              warmup_steps=10, profile_steps=40, pl_step=25,
                                              profile_path=profile)
        optimizer.on_epoch_begin()
        optimizer.on_step_begin()
        optimizer.on_step_end()
        optimizer.on_epoch_end()
        choices[type(selector).__name__] = get_gpus().get_power_management_limit(0) // 1000
    assert choices["Energy"] == 100 and choices["Time"] == 400, choices
    assert choices["MaxSlowdownConstraint"] == 300, choices
    optimizer = HFGlobalPowerLimitOptimizer(ZeusMonitor(gpu_indices=[0]), profile_path=profile)
    assert callable(optimizer.on_epoch_end) and callable(optimizer.on_step_begin)


def is_taken(monitor: ZeusMonitor, window: str) -> bool:
    """Whether a window of that name is open."""
    try:
        monitor.begin_window(window)
    except ValueError:
        return True
    monitor.end_window(window, cancel=True)
    return False


def power_limit_from_nothing() -> None:
    """The windows have a reserved name with the limit in watts."""
    monitor = ZeusMonitor(gpu_indices=[0])
    optimizer = GlobalPowerLimitOptimizer(monitor, wait_steps=1, warmup_steps=1, profile_steps=2,
                                          pl_step=100, profile_path="found.json")
    taken = set()
    for step in range(100):
        optimizer.on_step_begin()
        if is_taken(monitor, "__GlobalPowerLimitOptimizer_400"):
            taken.add(step)
        time.sleep(0.02)
        optimizer.on_step_end()
    assert taken == {2, 3}, taken
    limits = [one["power_limit"] for one in json.loads(Path("found.json").read_text())["measurements"]]
    assert limits == [400, 300, 200, 100], limits


def main() -> int:
    import reference_services

    for part in (energy_monitor, replayed_monitor, power_and_temperature, gpus_by_today_names,
                 gpus_by_old_names, cpus_and_boards, power_limit, power_limit_from_nothing,
                 *reference_services.PARTS):
        part()
        print("ok", part.__name__, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
