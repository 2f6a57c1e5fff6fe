"""A stranger's NVML client (C or Python, NVML_CLIENT) sees and controls simulated GPUs."""

import json
import os
import subprocess
import sys
import unittest

from sim_testing import SimTestCase

CLIENT = os.environ["NVML_CLIENT"].split("|")  # Paths may hold blanks.
UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, GPU_IS_LOST = 1, 3, 4, 9, 15
INVALID_ARGUMENT, NOT_FOUND, LIB_RM_VERSION_MISMATCH = 2, 6, 18
NOBODY = 65534
IS_C_CLIENT = len(CLIENT) == 1


class Client:
    """A running client; ask() sends a command and waits for its answer."""

    def __init__(self, test, environment, wrapper=(), **options):
        self.process = subprocess.Popen(
            [*wrapper, *CLIENT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            **options,
        )
        test.addCleanup(self.close)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        if not self.process.stdin.closed:
            self.process.communicate(timeout=60)
        return self.process.returncode


class NvmlAbiTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.sim("start", "--gpus", "2xA100,2xV100")
        self.client_environment = self.evaluated_environment()

    def client(self, **options):
        return Client(self, self.client_environment, **options)

    def assert_near_truth(self, milliwatts, gpu):
        """A board's gain and offset are a few per cent off; the unit is not."""
        exact = json.loads(self.sim("truth", "--json"))[gpu]["power_watts"] * 1000
        self.assertAlmostEqual(milliwatts, exact, delta=0.1 * exact)

    def test_reads_names_power_energy_and_limits(self):
        client = self.client()
        self.assertEqual(client.ask("count"), "4")
        self.assertEqual(client.ask("name 0"), "NVIDIA A100-SXM4-40GB")
        self.assertRegex(client.ask("name 3"), "^Tesla V100")
        self.assertEqual(client.ask("limits 0"), "400000 400000 100000 400000")
        self.assert_near_truth(int(client.ask("power 2")), 2)
        self.assertGreaterEqual(int(client.ask("energy 0")), 0)
        uuids = [gpu["uuid"] for gpu in json.loads(self.sim("truth", "--json"))]
        self.assertEqual([client.ask(f"uuid {i}") for i in range(4)], uuids)
        self.assertEqual(client.close(), 0)

    def test_field_values_agree_with_the_single_calls(self):
        client = self.client()
        energy, joules, power, watts, limit, requested, unknown = map(
            int, client.ask("fields 2").split())
        self.assertEqual((energy, power, limit, unknown), (0, 0, 0, NOT_SUPPORTED))
        self.assertLessEqual(joules, int(client.ask("energy 2")))
        self.assert_near_truth(watts, 2)
        self.assertEqual(requested, 250000)

    @unittest.skipIf(os.geteuid() != 0, "only root may set a power limit")
    def test_sees_the_limit_that_another_process_sets(self):
        one, other = self.client(), self.client()
        self.assertEqual(one.ask("limits 2").split()[0], "250000")
        self.assertEqual(other.ask("set 2 150000"), "ok")
        self.assertEqual(one.ask("limits 2").split()[:2], ["150000", "150000"])
        self.assertEqual(one.ask("limits 3").split()[0], "250000")

    @unittest.skipIf(os.geteuid() != 0, "only root may set a power limit")
    def test_refuses_a_limit_outside_the_range(self):
        self.assertEqual(self.client().ask("set 2 99999999"), "error 2")

    @unittest.skipIf(os.geteuid() != 0, "only root may lock a clock")
    def test_locks_only_the_clocks_that_the_part_can_lock(self):
        self.sim("stop")
        self.sim("start", "--gpus", "P100,V100,A100")
        client = self.client()
        refused = f"error {NOT_SUPPORTED}"
        self.assertEqual([client.ask(f"lock {i} {clock}") for i, clock in
                          enumerate((1328, 1380, 1410))], [refused, "ok", "ok"])
        self.assertEqual([client.ask(f"lock-memory {i} {clock}") for i, clock in
                          enumerate((715, 877, 1215))], [refused, refused, "ok"])

    @unittest.skipIf(os.geteuid() != 0, "only root may set a power limit")
    def test_a_driver_reload_forgets_the_limit(self):
        client = self.client()
        self.assertEqual(client.ask("set 2 150000"), "ok")
        self.sim("fault", "--gpu", "2", "--kind", "reset")
        self.assertEqual(client.ask("limits 2").split()[:2], ["250000", "250000"])

    @unittest.skipIf(os.geteuid() != 0, "only root can run a client as another user")
    def test_another_user_reads_but_does_not_set(self):
        client = self.client(user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(client.ask("name 0"), "NVIDIA A100-SXM4-40GB")
        self.assertEqual(client.ask("set 0 150000"), f"error {NO_PERMISSION}")

    @unittest.skipIf(os.geteuid() != 0, "only root can give a capability up or on")
    def test_the_capability_decides_and_not_the_user(self):
        for wrapper, answer in (
            (("setpriv", "--bounding-set=-sys_admin"), f"error {NO_PERMISSION}"),
            (("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
              "--inh-caps=+sys_admin,+dac_override",  # The file of the node belongs to root.
              "--ambient-caps=+sys_admin,+dac_override"), "ok"),
            (("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
              "--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
             f"error {NO_PERMISSION}"),
        ):
            with self.subTest(wrapper=wrapper):
                client = self.client(wrapper=wrapper)
                self.assertEqual(client.ask("set 0 150000"), answer)

    def test_a_load_of_another_process_shows_in_the_counter(self):
        client = self.client()
        before = int(client.ask("energy 2"))
        self.sim("load", "--gpu", "2", "--watts", "200", "--seconds", "0.5")
        used = int(client.ask("energy 2")) - before
        self.assertGreater(used, 80_000)

    def test_faults_reach_the_client(self):
        client = self.client()
        self.sim("fault", "--gpu", "1", "--kind", "lost")
        self.assertEqual(client.ask("power 1"), f"error {GPU_IS_LOST}")
        self.assertEqual(client.ask("name 0"), "NVIDIA A100-SXM4-40GB")
        self.sim("fault", "--gpu", "1", "--kind", "clear")
        self.assertEqual(client.ask("name 1"), "NVIDIA A100-SXM4-40GB")
        self.sim("fault", "--gpu", "0", "--kind", "oob-cap:200W")
        self.assertEqual(client.ask("limits 0"), "400000 200000 100000 400000")
        self.sim("fault", "--gpu", "0", "--kind", "no-permission")
        self.assertEqual(client.ask("set 0 150000"), f"error {NO_PERMISSION}")

    def test_the_counter_restarts_after_a_reset(self):
        self.sim("load", "--gpu", "2", "--watts", "200", "--seconds", "0.5")
        client = self.client()
        before = int(client.ask("energy 2"))
        self.sim("fault", "--gpu", "2", "--kind", "reset")
        self.assertLess(int(client.ask("energy 2")), before)

    def test_a_forked_child_must_initialise_again(self):
        client = self.client()
        self.assertEqual(client.ask("fork 0"), f"{UNINITIALIZED} 0")
        self.assertEqual(client.ask("count"), "4")

    def test_a_stopped_node_is_lost(self):
        client = self.client()
        self.assertEqual(client.ask("count"), "4")
        self.sim("stop")
        self.assertEqual(client.ask("power 0"), f"error {GPU_IS_LOST}")

    def test_without_a_node_the_driver_is_not_loaded(self):
        self.sim("stop")
        del self.client_environment["ZEUS_SIM_NODE"]
        client = self.client()
        self.assertEqual(client.process.stdout.readline().strip(), f"error {DRIVER_NOT_LOADED}")

    def init_error(self):
        """The code of nvmlInit and what the library says about it, in a process of its own."""
        script = ("import ctypes, os; nvml = ctypes.CDLL(os.environ['ZEUS_NVML_LIBRARY']); "
                  "nvml.nvmlErrorString.restype = ctypes.c_char_p; code = nvml.nvmlInit_v2(); "
                  "print(code, nvml.nvmlErrorString(code).decode())")
        done = subprocess.run([sys.executable, "-c", script], env=self.client_environment,
                              capture_output=True, text=True, check=True, timeout=60)
        code, text = done.stdout.strip().split(" ", 1)
        return int(code), text

    @unittest.skipIf(IS_C_CLIENT, "needs the interpreter to load the library")
    def test_without_a_node_the_library_says_why(self):
        self.sim("stop")
        code, text = self.init_error()
        self.assertEqual(code, DRIVER_NOT_LOADED)
        self.assertIn('no simulated node named "default"', text)
        self.assertIn("zeus sim start --name default", text)
        del self.client_environment["ZEUS_SIM_NODE"]
        self.client_environment["ZEUS_SIM"] = "4xFOO"
        code, text = self.init_error()
        self.assertEqual(code, DRIVER_NOT_LOADED)
        self.assertIn('ZEUS_SIM: bad GPU list "4xFOO"', text)

    @unittest.skipIf(IS_C_CLIENT, "needs the interpreter to load the library")
    def test_a_node_of_another_build_is_a_version_mismatch(self):
        path = os.path.join(self.directory.name, "zeus-sim-default")
        with open(path, "r+b") as file:
            file.seek(8)  # Behind the magic number.
            file.write(b"another!")
        code, text = self.init_error()
        self.assertEqual(code, LIB_RM_VERSION_MISMATCH)
        self.assertIn("another build of Zeus", text)

    @unittest.skipIf(IS_C_CLIENT, "needs the interpreter to load the library")
    def test_details_of_the_interface(self):
        script = ("import ctypes, os; nvml = ctypes.CDLL(os.environ['ZEUS_NVML_LIBRARY']); "
                  "device = ctypes.c_void_p(); value = ctypes.create_string_buffer(64); "
                  "print(nvml.nvmlDeviceSetPowerManagementLimit_v2(device, value)); "
                  "nvml.nvmlInit_v2(); "
                  "[print(nvml.nvmlDeviceGetHandleByPciBusId_v2(name, ctypes.byref(device))) "
                  "for name in (b'0000:01:00.0', b'01:00', b'0000:01:00.0junk', b'0000:01:00.1')]")
        done = subprocess.run([sys.executable, "-c", script], env=self.client_environment,
                              capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual([int(code) for code in done.stdout.split()],
                         [UNINITIALIZED, 0, 0, INVALID_ARGUMENT, NOT_FOUND])

    def test_without_a_node_the_environment_describes_a_private_one(self):
        self.sim("stop")
        del self.client_environment["ZEUS_SIM_NODE"]
        self.client_environment["ZEUS_SIM"] = "2xH100"
        client = self.client()
        self.assertEqual(client.ask("count"), "2")
        self.assertEqual(client.ask("name 1"), "NVIDIA H100 80GB HBM3")
        self.assertEqual(os.listdir(self.directory.name), [])


if __name__ == "__main__":
    unittest.main()
