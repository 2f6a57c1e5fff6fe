"""Windows wait for the work of torch, JAX and CuPy, where the program has imported them."""

import sys
import time
import types
import unittest
import warnings

from node_testing import NodeTestCase

from zeus.monitor import ZeusMonitor


class Torch:
    """Stands for torch with GPUs, which work on their own."""

    def __init__(self):
        self.synchronized = []
        self.cuda = types.SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            current_device=lambda: 0,
            device_count=lambda: 4,
            memory_reserved=lambda index: 1 if index == 2 else 0,
            synchronize=self.synchronized.append,
        )


class Jax:
    """Stands for JAX: what is put on a device is ready when all before it is."""

    def __init__(self, gpus):
        self.waited_for = []
        self._gpus = [types.SimpleNamespace(id=index) for index in range(gpus)]

    def devices(self, kind):
        if not self._gpus:
            raise RuntimeError(f"Unknown backend: {kind!r}")
        return self._gpus

    def device_put(self, value, device):
        return Put(value, device.id, self.waited_for)


class Put(float):
    """An array on a device."""

    def __new__(cls, value, device, waited_for):
        put = super().__new__(cls, value)
        put.block_until_ready = lambda: waited_for.append(device)
        put.place = device, waited_for
        return put

    def __add__(self, other):
        return Put(float(self) + other, *self.place)


class Cupy:
    """Stands for CuPy."""

    def __init__(self, gpus):
        self.synchronized = synchronized = []

        class CUDARuntimeError(RuntimeError):
            pass

        def count():
            if gpus == 0:
                raise CUDARuntimeError("no CUDA-capable device is detected")
            return gpus

        class Device:
            def __init__(self, index):
                self.synchronize = lambda: synchronized.append(index)

        runtime = types.SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
        self.cuda = types.SimpleNamespace(runtime=runtime, Device=Device)


class SynchronisationTest(NodeTestCase):
    def framework(self, name, module):
        sys.modules[name] = module
        self.addCleanup(sys.modules.pop, name)
        return module

    def test_a_framework_that_is_imported_later_is_waited_for(self):
        with ZeusMonitor() as monitor:
            monitor.begin_window("before")
            torch = self.framework("torch", Torch())
            monitor.end_window("before")
            self.assertEqual(torch.synchronized, [0, 2])  # Where this process works.
            monitor.begin_window("after")
            monitor.end_window("after", sync_execution=False)
            self.assertEqual(torch.synchronized, [0, 2, 0, 2])

    def test_the_monitor_learns_that_work_ended_at_both_edges(self):
        torch = self.framework("torch", Torch())

        def work(_):
            """Keeps the caller waiting for longer than a GPU without work would."""
            end = time.perf_counter() + 1e-3
            while time.perf_counter() < end:
                pass

        torch.cuda.synchronize = work
        with ZeusMonitor() as monitor:
            monitor.begin_window("without", sync_execution=False)
            monitor.end_window("without", sync_execution=False)
            self.assertEqual(monitor._edges_after_work, 0)
            monitor.begin_window("a")
            self.assertEqual(monitor._edges_after_work, 1)
            monitor.end_window("a")
            self.assertEqual(monitor._edges_after_work, 2)
            monitor.begin_window("a", restart=True)
            self.assertEqual(monitor._edges_after_work, 3)
            monitor.end_window("a", sync_execution=True)
            self.assertEqual(monitor._edges_after_work, 4)
            with monitor.window("b"):
                self.assertEqual(monitor._edges_after_work, 5)
            self.assertEqual(monitor._edges_after_work, 6)

    def test_the_framework_can_be_chosen(self):
        self.framework("torch", Torch())
        with ZeusMonitor(sync_execution_with="jax") as monitor:
            monitor.begin_window("a")
            monitor.end_window("a")
        self.assertEqual(sys.modules["torch"].synchronized, [])

    def test_a_framework_without_gpus_is_left_alone(self):
        torch = self.framework("torch", Torch())
        torch.cuda.is_available = lambda: False
        with ZeusMonitor() as monitor:
            monitor.begin_window("a")
            monitor.end_window("a")
        self.assertEqual(torch.synchronized, [])

    def test_what_the_framework_raises_passes(self):
        torch = self.framework("torch", Torch())

        def fail(_):
            raise RuntimeError("device-side assert")

        with ZeusMonitor() as monitor:
            monitor.begin_window("a")
            torch.cuda.synchronize = fail
            with self.assertRaisesRegex(RuntimeError, "device-side assert"):
                monitor.end_window("a")
            monitor.end_window("a", sync_execution=False)  # Still open.

    def test_jax_is_waited_for_on_the_gpus_of_the_monitor(self):
        jax = self.framework("jax", Jax(gpus=4))
        with ZeusMonitor(gpu_indices=[1, 3]) as monitor:
            monitor.begin_window("a")
            self.assertEqual(jax.waited_for, [1, 3])
            monitor.end_window("a")
        self.assertEqual(jax.waited_for, [1, 3, 1, 3])

    def test_cupy_is_waited_for_on_the_gpus_of_the_monitor(self):
        cupy = self.framework("cupy", Cupy(gpus=4))
        with ZeusMonitor(gpu_indices=[2]) as monitor:
            monitor.begin_window("a")
            monitor.end_window("a")
        self.assertEqual(cupy.synchronized, [2, 2])

    def test_of_several_frameworks_the_first_with_gpus_is_waited_for(self):
        self.framework("torch", Torch()).cuda.is_available = lambda: False
        self.framework("jax", Jax(gpus=0))
        cupy = self.framework("cupy", Cupy(gpus=4))
        with ZeusMonitor() as monitor:
            monitor.begin_window("a")
            monitor.end_window("a")
        self.assertEqual(cupy.synchronized, [0, 1, 2, 3, 0, 1, 2, 3])

    def test_frameworks_without_gpus_cost_nothing(self):
        self.framework("jax", Jax(gpus=0))
        cupy = self.framework("cupy", Cupy(gpus=0))
        with ZeusMonitor() as monitor:
            monitor.begin_window("a")
            monitor.end_window("a")
        self.assertEqual(cupy.synchronized, [])


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    unittest.main()
