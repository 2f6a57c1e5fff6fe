#!/usr/bin/env python3
"""zeus llm gateway --slo on a simulated GPU: the clock follows the load, is put back on every end of the program, and is
left alone where somebody else locked it. The server is `zeus llm sim`."""

import ctypes
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading
import unittest

from llm_gateway_testing import ZEUS, Gateway, GatewayTestCase, SimulatedServer, wait_until

MODEL = "llama-3.1-8b"
HIGHEST = 1980  # MHz, of a simulated H100.
# Learned by an earlier run, so that no test waits for the minute in which the engine is watched.
KNOWLEDGE = {
    "schema": "zeus.engine_knowledge/1", "model": MODEL, "highest_clock_hertz": HIGHEST * 1e6,
    "times_seconds": [0.0068, 0.0, 0.007, 1e-05, 3e-05, 0.0, 0.0, 2.4e-05],
    "energies_joules": [2.4, 0.03, 0.03], "idle_watts": 70.0,
    "clocks": [0.2, 0.4, 0.6, 0.8, 1.0], "ratios": [0.45, 0.5, 0.6, 0.8, 1.0]}
# Easy targets: one request at a time keeps them at any clock.
EASY = "ttft=5s,tpot=500ms"


class Driver:
    """The GPU as its driver shows it to an administrator."""

    def __init__(self, test, environment):
        if "ZEUS_SANITIZED" in os.environ:
            raise unittest.SkipTest("Python lacks the sanitizer's library, which the driver needs")
        # The driver looks for its node in the environment of this process.
        os.environ.update({name: value for name, value in environment.items() if name.startswith("ZEUS_SIM")})
        self.nvml = ctypes.CDLL(environment["ZEUS_NVML_LIBRARY"])
        assert self.nvml.nvmlInit_v2() == 0
        test.addCleanup(self.nvml.nvmlShutdown)
        self.device = ctypes.c_void_p()
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0

    def name(self):
        text = ctypes.create_string_buffer(96)
        assert self.nvml.nvmlDeviceGetName(self.device, text, 96) == 0
        return text.value.decode()

    def clock(self):
        """Graphics clock in MHz."""
        clock = ctypes.c_uint()
        assert self.nvml.nvmlDeviceGetClockInfo(self.device, 0, ctypes.byref(clock)) == 0
        return clock.value

    def busy(self):
        watts = ctypes.c_uint()
        assert self.nvml.nvmlDeviceGetPowerUsage(self.device, ctypes.byref(watts)) == 0
        return watts.value > 90_000

    def locked(self):
        """Whether a lock holds the clock of the busy GPU."""
        reasons = ctypes.c_ulonglong()
        assert self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.device, ctypes.byref(reasons)) == 0
        return bool(reasons.value & 2)

    def lock(self, megahertz):
        """As nvidia-smi -lgc does."""
        clock = ctypes.c_uint(megahertz)
        assert self.nvml.nvmlDeviceSetGpuLockedClocks(self.device, clock, clock) == 0


class Load:
    """One streamed request after the other, until the end."""

    def __init__(self, ask):
        self.ask, self.end, self.statuses = ask, threading.Event(), []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.end.is_set():
            try:
                self.statuses.append(self.ask(model=MODEL, stream=True, max_tokens=60, ignore_eos=True)[0])
            except (OSError, http.client.HTTPException):
                return  # The gateway has ended.

    def stop(self):
        self.end.set()
        self.thread.join()


class GovernorTest(GatewayTestCase):
    def setUp(self):
        super().setUp()
        self.simulation = self.simulated()
        data = os.path.join(self.directory.name, "data")
        self.simulation |= {"HOME": self.directory.name, "XDG_DATA_HOME": data}
        self.driver = Driver(self, self.simulation)
        gpus = f"1 x {self.driver.name()}"
        name = "".join(c if c.isalnum() or c in "-." else "-" for c in gpus)
        self.knowledge = pathlib.Path(data) / "zeus" / "governor" / f"{MODEL}_{name}.json"
        self.knowledge.parent.mkdir(parents=True)
        self.knowledge.write_text(json.dumps(KNOWLEDGE | {"gpus": gpus}), encoding="utf-8")
        self.server = SimulatedServer(self.simulation)
        self.addCleanup(self.server.kill)

    def governed(self, *arguments, slo=EASY):
        return self.gateway("--upstream", self.server.url, "--gpus", "0", "--slo", slo, *arguments,
                            environment=self.simulation)

    def load(self, gateway):
        load = Load(gateway.chat)
        self.addCleanup(load.stop)
        return load

    def group(self, gateway):
        return gateway.get("/zeus/governor")["groups"][0]

    def await_low_clock(self, gateway):
        """Waits until requests run at less than 70 % of the highest clock."""
        def low():
            group = self.group(gateway)
            return (group["in_flight"] > 0 and group["state"] in ("sweep", "targets", "least_energy")
                    and (group["locked_clock_hertz"] or 1e12) < 0.7e6 * HIGHEST)
        wait_until(low, "the clock does not go down under a light load")

    def await_busy_clock(self, condition, what):
        """Loads the server past the gateway until its GPU is busy and the clock as wanted."""
        direct = Gateway.__new__(Gateway)
        direct.port = self.server.port
        load = Load(direct.chat)
        try:
            wait_until(lambda: self.driver.busy() and condition(self.driver.clock()), what)
        finally:
            load.stop()

    def zeus(self, *arguments):
        return subprocess.run([ZEUS, *arguments], env=self.simulation, capture_output=True, text=True, timeout=60,
                              check=False)

    def check_put_back(self):
        self.assertEqual(json.loads(self.zeus("knobs", "list", "--json").stdout or "[]"), [])
        self.await_busy_clock(lambda clock: clock > 0.9 * HIGHEST, "the clock is not put back")

    def test_the_clock_goes_down_and_is_back_after_sigterm(self):
        gateway = self.governed()
        load = self.load(gateway)
        self.await_low_clock(gateway)
        wait_until(lambda: self.driver.clock() < 0.75 * HIGHEST, "the driver shows no lower clock")
        text = gateway.ask("GET", "/zeus/metrics")[2].decode()
        for name in ("zeus_llm_clock_hertz", "zeus_llm_governor_clock_hertz", "zeus_llm_governor_clock_changes_total"):
            self.assertIn(name + '{gpus="gpu:0"}', text)
        load.stop()
        self.assertEqual(set(load.statuses), {200})
        self.knowledge.unlink()  # The gateway writes what it knows at its end.
        gateway.process.send_signal(signal.SIGTERM)
        output, errors = gateway.process.communicate(timeout=60)
        self.assertEqual(gateway.process.returncode, 0, errors)
        self.assertIn("governor of gpu:0: ", output)
        self.assertIn("requests missed a target", output)
        self.check_put_back()
        self.assertEqual(json.loads(self.knowledge.read_text(encoding="utf-8"))["model"], MODEL)

    def test_the_clock_is_back_after_sigint_with_requests_in_flight(self):
        gateway = self.governed("--shutdown-timeout", "0.1")
        self.load(gateway)
        self.await_low_clock(gateway)
        code, errors = gateway.stop(signal.SIGINT)
        self.assertEqual(code, 0, errors)
        self.check_put_back()

    def test_a_hangup_opens_the_log_again_and_governs_on(self):
        gateway = self.governed("--log", os.path.join(self.directory.name, "log"))
        self.load(gateway)
        self.await_low_clock(gateway)
        os.rename(os.path.join(self.directory.name, "log"), os.path.join(self.directory.name, "old"))
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: os.path.exists(os.path.join(self.directory.name, "log")), "the log is not opened again")
        self.await_low_clock(gateway)
        self.assertEqual(gateway.stop()[0], 0)
        self.check_put_back()

    def test_after_sigkill_the_journal_puts_it_back(self):
        gateway = self.governed()
        load = self.load(gateway)
        self.await_low_clock(gateway)
        gateway.kill()
        load.stop()
        self.await_busy_clock(lambda clock: clock < 0.75 * HIGHEST, "the kill itself put the clock back")
        restored = self.zeus("knobs", "restore")
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assertIn("graphics clock of gpu:0", restored.stdout)
        self.check_put_back()

    def test_after_sigkill_the_next_start_puts_it_back(self):
        gateway = self.governed()
        load = self.load(gateway)
        self.await_low_clock(gateway)
        gateway.kill()
        load.stop()
        second = self.governed()
        self.await_busy_clock(lambda clock: clock > 0.9 * HIGHEST, "the next start does not put the clock back")
        self.assertIn("graphics clock of gpu:0", second.stop()[1])

    def test_a_clock_that_somebody_else_locked_is_left_alone(self):
        self.driver.lock(1005)
        gateway = self.governed()
        load = self.load(gateway)
        wait_until(lambda: self.group(gateway)["stands_still"], "the lock goes unnoticed")
        group = self.group(gateway)
        self.assertIn("another program has locked the graphics clock of gpu:0 to 1005 MHz", group["text"])
        self.assertEqual((group["clock_changes"], group["locked_clock_hertz"]), (0, None))
        load.stop()
        self.assertEqual(set(load.statuses), {200})
        code, errors = gateway.stop()
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("stands still"), 1, errors)
        self.await_busy_clock(lambda clock: clock == 1005, "the administrator's lock is gone")

    def test_an_observer_touches_nothing(self):
        gateway = self.governed("--slo-observe")
        self.load(gateway)

        def decided():
            self.assertFalse(self.driver.locked())
            group = self.group(gateway)
            return (group["wanted_clock_hertz"] or 1e12) < 0.7e6 * HIGHEST and group["saved_joules"] > 0
        wait_until(decided, "the observer never decides for a lower clock")
        group = self.group(gateway)
        self.assertEqual((group["clock_changes"], group["locked_clock_hertz"]), (0, None))
        self.assertEqual(json.loads(self.zeus("knobs", "list", "--json").stdout or "[]"), [])
        status, _, body = gateway.ask("PUT", "/zeus/governor", {"mode": "on"})
        self.assertEqual(status, 409, body)
        gateway.process.send_signal(signal.SIGTERM)
        self.assertIn("would have saved about", gateway.process.communicate(timeout=60)[0])

    def test_the_governor_is_switched_by_programs_of_this_machine(self):
        gateway = self.governed()
        self.load(gateway)
        self.await_low_clock(gateway)
        for body, headers, expected in (({"mode": "off"}, {"Origin": "http://evil.example"}, 403),
                                        ({"mode": "off"}, {"X-Forwarded-For": "10.0.0.1"}, 403),
                                        ({"mode": "fast"}, {}, 400), ("nonsense", {}, 400), ({}, {}, 400)):
            self.assertEqual(gateway.ask("PUT", "/zeus/governor", body, headers)[0], expected, (body, headers))
        self.assertEqual(gateway.ask("DELETE", "/zeus/governor")[0], 405)
        self.assertEqual(gateway.get("/zeus/governor")["mode"], "on")
        self.assertEqual(gateway.ask("PUT", "/zeus/governor", {"mode": "off"})[0], 200)
        wait_until(lambda: self.group(gateway)["state"] == "off", "the governor stays on")
        wait_until(lambda: self.driver.busy() and self.driver.clock() > 0.9 * HIGHEST, "the clock is not put back")
        self.assertEqual(gateway.ask("PUT", "/zeus/governor", {"mode": "on"})[0], 200)
        self.await_low_clock(gateway)

    def test_the_benchmark_compares_off_and_on(self):
        gateway = self.governed()
        done = self.zeus("llm", "bench", "--url", f"http://127.0.0.1:{gateway.port}", "--rate", "3", "--duration", "10s",
                         "--prompt-tokens", "100", "--output-tokens", "60", "--governor", "off,on", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        off, on = report["governor"]["modes"]
        self.assertEqual((off["mode"], on["mode"]), ("off", "on"))
        # How much is saved depends on how fast this machine simulates: docs/llm-governor.md has figures.
        for figures in (off, on):
            self.assertGreater(figures["energy_joules"], 0)
            self.assertGreater(figures["energy_joules_sigma"], 0)
            self.assertGreater(figures["missed_share_sigma"], 0)  # The targets are the gateway's.
        self.assertAlmostEqual(report["governor"]["saved_share"], 1 - on["energy_joules"] / off["energy_joules"])
        self.assertGreater(report["governor"]["saved_share_sigma"], 0)
        self.assertGreater(self.group(gateway)["clock_changes"], 0)
        self.assertEqual((len(report["runs"]), len(report["governor"]["baseline_runs"])), (1, 1))
        self.assertEqual(gateway.get("/zeus/governor")["mode"], "on")

    def test_a_permission_that_is_lost_costs_no_request(self):
        gateway = self.governed()
        self.sim("fault", "--name", "llm", "--gpu", "0", "--kind", "no-permission")
        load = self.load(gateway)
        wait_until(lambda: self.group(gateway)["stands_still"], "the refusal goes unnoticed")
        load.stop()
        self.assertEqual(set(load.statuses), {200})
        self.assertEqual(gateway.stop()[1].count("stands still"), 1)


class StartTest(GatewayTestCase):
    """The gateway says in one sentence why it does not start."""

    def refused(self, environment, *arguments):
        done = subprocess.run([ZEUS, "llm", "gateway", "--listen", "127.0.0.1:0", *arguments], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_without_gpus_there_is_nothing_to_govern(self):
        error = self.refused(self.environment, "--upstream", "http://127.0.0.1:1", "--slo", EASY)
        self.assertIn("--slo has no clock to govern", error)

    def test_wrong_targets_are_named(self):
        error = self.refused(self.environment, "--upstream", "http://127.0.0.1:1", "--slo", "ttft=1")
        self.assertIn("--slo", error)
        self.assertIn("ttft needs a time above 0 with its unit", error)

    def test_a_gpu_belongs_to_one_governed_upstream(self):
        error = self.refused(self.simulated("2xH100"), "--upstream", "http://127.0.0.1:1", "--gpus", "0", "--upstream",
                             "http://127.0.0.1:2", "--gpus", "0,1", "--slo", EASY)
        self.assertIn("--slo cannot govern gpu:0: http://127.0.0.1:1 and http://127.0.0.1:2 share it", error)

    def test_a_missing_permission_is_said_with_the_fix(self):
        environment = self.simulated()
        self.sim("fault", "--name", "llm", "--gpu", "0", "--kind", "no-permission")
        upstream = ("--upstream", "http://127.0.0.1:1", "--gpus", "0", "--slo", EASY)
        error = self.refused(environment, *upstream)
        self.assertIn("--slo may not lock the clock of gpu:0", error)
        self.assertIn("--slo-observe needs no permission", error)
        self.assertEqual(self.gateway(*upstream, "--slo-observe", environment=environment).stop()[0], 0)

    def test_a_gateway_without_targets_has_no_governor(self):
        gateway = self.gateway("--upstream", "http://127.0.0.1:1")
        for method in ("GET", "PUT"):
            status, _, body = gateway.ask(method, "/zeus/governor", {"mode": "off"})
            self.assertEqual(status, 404)
            self.assertIn(b"start it with --slo", body)


if __name__ == "__main__":
    unittest.main()
