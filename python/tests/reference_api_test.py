"""A script for the reference implementation runs unchanged."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from node_testing import ZEUS, NodeTestCase
from zeusd_test import Daemon

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = [HERE / "reference_script.py", HERE / "reference_services.py"]

# Users of the reference implementation rely on these, by kind.
GPU_ALIASES = """
    getName getPowerManagementLimitConstraints setPowerManagementLimit resetPowerManagementLimit
    setPersistenceMode getSupportedMemoryClocks setMemoryLockedClocks resetMemoryLockedClocks
    getSupportedGraphicsClocks setGpuLockedClocks resetGpuLockedClocks getAveragePowerUsage
    getInstantPowerUsage getAverageMemoryPowerUsage supportsGetTotalEnergyConsumption
    getTotalEnergyConsumption getGpuTemperature get_power_management_limit get_persistence_mode
    reset_locked_clocks"""
OTHER_ALIASES = """
    supportsGetDramEnergyConsumption getAvailableMetrics beginWindow endWindow zeroAllFields"""
IMPORTS = """
    ZeusMonitor Measurement PowerMonitor TemperatureMonitor get_gpus get_cpus get_soc
    BatchSizeOptimizer JobSpec PipelineFrequencyOptimizer GlobalPowerLimitOptimizer Energy Time
    ZeusCost MaxSlowdownConstraint OptimumSelector HFGlobalPowerLimitOptimizer Callback CallbackSet
    ZeusdConfig ZeusdClient require_capabilities ZeusdCapabilityError PowerStreamingClient
    ReplayZeusMonitor PowerDomain EnergyHistogram EnergyCumulativeCounter PowerGauge
    CarbonEmissionMonitor CarbonIntensityProvider ElectrictyMapsClient EnergyCostMonitor OpenEIClient
    measure profile_parameters profile_measurement_duration profile_cooldown_duration"""
RESERVED_WINDOWS = """
    __GlobalPowerLimitOptimizer_400 BatciSizeOptimizerClient __zeus_profile_run_trial"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ReferenceScriptTest(NodeTestCase):
    def serve(self, folder: str) -> str:
        """For jobs, and for pipelines of one stage."""
        schedule = pathlib.Path(folder, "schedule.py")
        schedule.write_text('[[("forward", 1410), ("backward", 1200)]]\n')
        server = subprocess.Popen([ZEUS, "serve", "--listen", "127.0.0.1:0", "--no-access-log",
                                   "--pipeline-schedule", schedule],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.terminate)
        assert server.stdout is not None
        return server.stdout.readline().removeprefix("listening on ").strip()

    def push_gateway(self) -> str:
        url = f"http://127.0.0.1:{free_port()}"
        gateway = subprocess.Popen(
            ["prometheus-pushgateway", f"--web.listen-address={url.removeprefix('http://')}",
             "--persistence.file="],  # It remembers nothing.
            stderr=subprocess.DEVNULL)
        self.addCleanup(gateway.wait)
        self.addCleanup(gateway.terminate)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{url}/-/ready", timeout=5).close()
                return url
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise AssertionError("the push gateway does not answer")

    def daemon(self) -> str:
        daemon = Daemon(unix=True)
        self.addCleanup(daemon.close)
        daemon.events.put({"timestamp_ms": 1000 * time.time(), "gpu_id": 0, "power_mw": 61000})
        return str(daemon.server.server_address)

    def test_a_script_for_the_reference_runs_unchanged(self) -> None:
        with tempfile.TemporaryDirectory(prefix="zeus-reference-test-") as folder:
            environment = {**os.environ, "ZEUS_SERVER_URL": self.serve(folder),
                           "PUSHGATEWAY_URL": self.push_gateway(),
                           "DAEMON_SOCKET": self.daemon()}
            done = subprocess.run([sys.executable, "-B", SCRIPTS[0]], cwd=folder, text=True,
                                  env=environment, capture_output=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_script_uses_every_name(self) -> None:
        words = "\n".join(script.read_text() for script in SCRIPTS)
        names = " ".join((GPU_ALIASES, OTHER_ALIASES, IMPORTS, RESERVED_WINDOWS)).split()
        self.assertEqual([name for name in names if name not in words], [])


if __name__ == "__main__":
    unittest.main()
