"""The power limits of a simulated node as its driver has them: what an administrator sees and sets."""

import ctypes
import os
import threading
import unittest


class Limits:
    """The limits of the node of a test case, whose environment() was evaluated."""

    def __init__(self, test, gpus=1):
        if "ZEUS_SANITIZED" in os.environ:
            raise unittest.SkipTest("Python lacks the sanitizer's library, which the driver needs")
        # The driver looks for its node in the environment of this process.
        os.environ.update({name: value for name, value in test.environment.items()
                           if name.startswith("ZEUS_SIM")})
        self._test = test
        self._nvml = ctypes.CDLL(test.environment["ZEUS_NVML_LIBRARY"])
        assert self._nvml.nvmlInit_v2() == 0
        test.addCleanup(self._nvml.nvmlShutdown)
        self._devices = []
        for index in range(gpus):
            device = ctypes.c_void_p()
            assert self._nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
            self._devices.append(device)
        self.highest = 0  # The highest that watch() and read() have seen.

    def read(self):
        watts = []
        for device in self._devices:
            milliwatts = ctypes.c_uint()
            assert self._nvml.nvmlDeviceGetPowerManagementLimit(
                device, ctypes.byref(milliwatts)) == 0
            watts.append(milliwatts.value / 1000)
        self.highest = max(self.highest, *watts)
        return watts

    def set_all(self, watts):
        """As nvidia-smi -pl does."""
        for device in self._devices:
            assert self._nvml.nvmlDeviceSetPowerManagementLimit(device, watts * 1000) == 0

    def watch(self):
        """Reads them all the time until the test ends."""
        end = threading.Event()

        def look():
            while not end.wait(0.002):
                self.read()

        thread = threading.Thread(target=look)
        thread.start()
        self._test.addCleanup(thread.join)
        self._test.addCleanup(end.set)
