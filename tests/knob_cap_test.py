"""Caps that others set, before and while `zeus train` and `zeus profile` turn power limits."""

import json
import os
import signal
import subprocess
import unittest

from limits_testing import Limits
from sim_testing import ZEUS, SimTestCase, wait_until

STEPS = "i=0; while [ $i -lt {0} ]; do i=$((i+1)); echo step $i; sleep 0.02; done"
QUICK = ["--slice", "300ms", "--warmup", "0s", "--progress", r"step (\d+)"]


class KnobCapTest(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)
        folder = self.directory.name
        self.environment |= {"HOME": folder, "XDG_DATA_HOME": os.path.join(folder, "data"),
                             "XDG_CONFIG_HOME": os.path.join(folder, "config")}
        self.sim("start", "--gpus", "A100")
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()
        self.limits = Limits(self)

    def start(self, *arguments):
        process = subprocess.Popen([ZEUS, *arguments], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

        self.addCleanup(end)
        return process

    def finish(self, process):
        output, errors = process.communicate(timeout=250)
        return process.returncode, output, errors

    def run_zeus(self, *arguments):
        return self.finish(self.start(*arguments))

    def await_limit(self, watts):
        wait_until(lambda: self.limits.read() == [watts], f"the limit of {watts} W never came")

    def train(self, *options, epochs=8, seconds=0.3):
        script = (f"i=0; while [ $i -lt {epochs} ]; do i=$((i+1)); sleep {seconds}; "
                  "echo acc=0.$i; done")
        return ["train", "--job", "job", "--batch-sizes", "32", "--default", "32", "--target",
                f"0.{epochs}", "--metric-regex", r"acc=([0-9.]+)", "--no-placeholder", *options,
                "--", "sh", "-c", script]

    def test_a_sweep_never_exceeds_the_limit_that_was_found(self):
        self.limits.set_all(250)
        self.limits.watch()
        saved = os.path.join(self.directory.name, "p.json")
        code, _, errors = self.run_zeus("profile", *QUICK, "--stride", "50", "--eta", "0", "--keep",
                                        "--json", saved, "--", "sh", "-c", STEPS.format(300))
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.limits.highest, 250)
        with open(saved, encoding="utf-8") as file:
            tried = [row["setting"] for row in json.load(file)["settings"]]
        self.assertEqual(tried, [250, 200, 150, 100])
        self.assertEqual(self.limits.read(), [250])

    def test_training_never_exceeds_the_limit_that_was_found(self):
        self.limits.set_all(250)
        self.limits.watch()
        for options in (["--eta", "0", "--stride", "75"], ["--eta", "0", "--power-limit", "max"]):
            code, _, errors = self.run_zeus(*self.train(*options))
            self.assertEqual(code, 0, errors)
            self.assertEqual(self.limits.highest, 250, options)
        code, _, errors = self.run_zeus(*self.train("--eta", "0", "--power-limit", "300"))
        self.assertIn("found at 250 W and is not raised to 300 W", errors)
        self.assertEqual(self.limits.highest, 250)
        self.assertEqual(self.limits.read(), [250])

    def test_more_is_allowed_by_the_user(self):
        self.limits.set_all(250)
        self.limits.watch()
        code, _, errors = self.run_zeus("profile", *QUICK, "--limits", "300,200", "--may-raise",
                                        "--", "sh", "-c", STEPS.format(100))
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.limits.highest, 300)
        self.assertEqual(self.limits.read(), [250])
        code, _, errors = self.run_zeus("profile", *QUICK, "--limits", "300,200", "--", "true")
        self.assertEqual(code, 2)
        self.assertIn("--may-raise", errors)

    def test_a_profile_from_before_a_cap_is_not_followed_above_it(self):
        code, _, errors = self.run_zeus(*self.train("--eta", "0", "--limits", "400,200"))
        self.assertEqual(code, 0, errors)
        self.limits.set_all(250)
        self.limits.highest = 0
        self.limits.watch()
        code, _, errors = self.run_zeus(*self.train("--eta", "0", "--limits", "400,200"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.limits.highest, 250)

    def profile_with_trouble(self, trouble):
        """Returns what `zeus profile` wrote after `trouble` came in its second slice."""
        saved = os.path.join(self.directory.name, "p.json")
        # Long slices: on a busy machine the steps and the trouble take their time.
        process = self.start("profile", "--slice", "5s", "--warmup", "0s", "--rounds", "1", "--stop",
                             "--progress", r"step (\d+)", "--limits", "400,300,200,100",
                             "--save", saved, "--", "sh", "-c", STEPS.format(100000))
        self.await_limit(300)
        trouble()
        code, _, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        with open(saved, encoding="utf-8") as file:
            return json.load(file), errors

    def test_settings_above_a_cap_from_outside_are_left_out(self):
        profile, errors = self.profile_with_trouble(
            lambda: self.sim("fault", "--gpu", "0", "--kind", "oob-cap:150W"))
        self.assertIn("a slice at 300 W is left out: the power limit of gpu:0 in force is 150 W",
                      errors)
        self.assertFalse(profile["complete"])
        self.assertEqual([point["limit_watts"] for point in profile["points"]], [400, 100])

    def test_a_slice_with_a_reload_of_the_driver_is_measured_again(self):
        profile, errors = self.profile_with_trouble(
            lambda: self.sim("fault", "--gpu", "0", "--kind", "reset"))
        self.assertNotIn("left out", errors)
        self.assertTrue(profile["complete"])
        self.assertEqual([point["limit_watts"] for point in profile["points"]],
                         [400, 300, 200, 100])
        self.assertEqual(self.limits.read(), [400])

    def test_what_an_administrator_sets_meanwhile_is_kept_to_and_stays(self):
        self.limits.watch()
        saved = os.path.join(self.directory.name, "p.json")
        process = self.start("profile", *QUICK, "--limits", "350,300,250,200,150", "--json", saved,
                             "--rounds", "2", "--", "sh", "-c", STEPS.format(500))
        self.await_limit(300)
        self.limits.set_all(220)
        self.limits.highest = 0
        code, _, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertIn("somebody else set the power limit of gpu:0 to 220 W meanwhile", errors)
        self.assertIn("is left out", errors)
        self.assertEqual(self.limits.highest, 220)
        self.assertEqual(self.limits.read(), [220])

    def test_a_permission_that_is_lost_is_said_with_an_exit_code(self):
        process = self.start(*self.train("--limits", "200,100", seconds=0.5))
        self.await_limit(200)
        self.sim("fault", "--gpu", "0", "--kind", "no-permission")
        code, _, errors = self.finish(process)
        self.assertEqual(code, 5, errors)
        self.assertNotIn("left alone", errors)
        self.assertIn("stays at 200 W (400 W before; zeus knobs restore puts it back)", errors)
        self.assertEqual(self.limits.read(), [200])
        self.sim("fault", "--gpu", "0", "--kind", "clear")
        code, output, _ = self.run_zeus("knobs", "restore")
        self.assertEqual((code, output), (0, "power limit of gpu:0 put back to 400 W\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
