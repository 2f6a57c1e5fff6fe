"""`zeus doctor --bundle` collects what a report needs and no secret; `zeus doctor --first-gpu` checks a board."""

import getpass
import gzip
import io
import json
import os
import socket
import subprocess
import tarfile
import unittest

from sim_testing import ZEUS, SimTestCase

SECRETS = {"token": "planted-token-7f3a", "password": "planted-password-91c2", "url": "planted-database-55aa",
           "home": "planted-home-folder", "user": "planteduser", "bearer": "planted-bearer-3c3c",
           "log": "planted-log-token-8d8d", "bare": "zt_planted0123456789abcdef0123"}  # fmt: skip


class DoctorBundleTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.sim("start", "--gpus", "2xA100", "--seed", "3")
        self.addCleanup(self.run_sim, "stop")
        self.client = self.evaluated_environment()
        self.uuid = json.loads(self.sim("truth", "--json"))[0]["uuid"]

    def zeus(self, *arguments, **variables):
        return subprocess.run([ZEUS, *arguments], env=self.client | variables, capture_output=True, text=True,
                              timeout=200, check=False)

    def planted(self):
        """A machine whose configuration, environment and log are full of secrets."""
        home = os.path.join(self.directory.name, "home", SECRETS["home"])
        os.makedirs(os.path.join(home, ".config", "zeus"))
        with open(os.path.join(home, ".config", "zeus", "zeus.toml"), "w", encoding="utf-8") as file:
            file.write(f'token = "{SECRETS["token"]}"\ndatabase = "postgresql://{SECRETS["user"]}:{SECRETS["url"]}@db/zeus"\n'
                       f'[serve]\npassword = "{SECRETS["password"]}"\nnode = "{self.uuid}"\n')
        log = os.path.join(self.directory.name, "zeusd.txt")
        with open(log, "w", encoding="utf-8") as file:
            file.write(f"GET / by {SECRETS['user']}: Authorization: Bearer {SECRETS['bearer']}\n"
                       f"refused token={SECRETS['log']} of {home}/x\nhost {socket.gethostname()} saw {SECRETS['bare']}\n")
        return {"HOME": home, "USER": SECRETS["user"], "ZEUSD_TOKEN": SECRETS["token"], "ZEUSD_LOG": log,
                "XDG_CONFIG_HOME": ""}

    def unpack(self, path):
        with tarfile.open(path) as archive:
            return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}

    def test_a_bundle_has_what_a_report_needs_and_no_planted_secret(self):
        path = os.path.join(self.directory.name, "bundle.tar.gz")
        done = self.zeus("doctor", "--seconds", "0.1", "--bundle", path, **self.planted())
        self.assertEqual(done.returncode, 0, done.stderr)
        files = self.unpack(path)
        for name in ("README.txt", "versions.json", "doctor.json", "machine.json", "knobs.json", "environment.txt",
                     "zeusd.log", "driver.zst"):
            self.assertIn(name, files)
            if name != "README.txt":
                self.assertIn(name, done.stdout)
                self.assertIn(name, files["README.txt"].decode())
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertTrue(any(name.startswith("configuration-") for name in files), sorted(files))
        self.assertEqual(len(json.loads(files["doctor.json"])["gpus"]), 2)

        recording = os.path.join(self.directory.name, "driver.zst")
        with open(recording, "wb") as file:
            file.write(files["driver.zst"])
        shown = self.zeus("recording", "show", "--json", recording)
        self.assertGreater(json.loads(shown.stdout)["calls"], 10)
        files["driver.json"] = shown.stdout.encode()
        with gzip.open(path) as unpacked:
            files["everything"] = unpacked.read()
        hidden = [*SECRETS.values(), self.uuid, self.directory.name + "/home/" + SECRETS["home"]]
        if len(getpass.getuser()) > 3 and getpass.getuser() != "root":
            hidden.append(getpass.getuser())
        for name, content in files.items():
            for secret in hidden:
                self.assertNotIn(secret.encode(), content, name)
        if len(socket.gethostname()) > 5:
            self.assertNotIn(socket.gethostname().encode(), files["zeusd.log"])

    def test_the_driver_of_a_bundle_is_replayed(self):
        path = os.path.join(self.directory.name, "bundle.tar.gz")
        self.assertEqual(self.zeus("doctor", "--seconds", "0.1", "--bundle", path).returncode, 0)
        recording = os.path.join(self.directory.name, "driver.zst")
        with tarfile.open(fileobj=io.BytesIO(open(path, "rb").read())) as archive, open(recording, "wb") as file:
            file.write(archive.extractfile("driver.zst").read())
        self.sim("start", "--name", "theirs", "--recording", recording)
        self.client = self.evaluated_environment("--name", "theirs")
        done = self.zeus("doctor", "--json", "--seconds", "0.1")
        gpus = json.loads(done.stdout)["gpus"]
        self.assertEqual([gpu["name"] for gpu in gpus], ["NVIDIA A100-SXM4-40GB"] * 2)
        self.assertNotEqual(gpus[0]["uuid"], self.uuid)

    def test_an_unwritable_bundle_is_refused(self):
        done = self.zeus("doctor", "--bundle", "/proc/nowhere/bundle")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/proc/nowhere", done.stderr)

    def test_the_checks_of_a_real_board_pass_on_a_simulated_one(self):
        done = self.zeus("doctor", "--first-gpu", "--minutes", "0.2", "--json")
        report = json.loads(done.stdout)
        verdicts = {check["name"]: check["verdict"] for check in report["checks"]}
        findings = json.dumps(report["checks"], indent=1)
        # How long a call takes and how much a processor costs depends on what else the machine does.
        for name in ("sensors", "energy counter", "power limit", "limit under load", "kill -9"):
            expected = "held" if os.geteuid() == 0 or name in ("sensors", "energy counter") else "not_here"
            self.assertEqual(verdicts[name], expected, findings)
        self.assertEqual((verdicts["AMD GPU"], verdicts["MIG"]), ("not_here", "not_here"))
        self.assertIn(done.returncode, (0, 1))

    def test_a_broken_promise_is_found(self):
        self.sim("fault", "--gpu", "0", "--kind", "frozen")
        done = self.zeus("doctor", "--first-gpu", "--minutes", "0.1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("NO: it did not move twice", done.stdout)


if __name__ == "__main__":
    unittest.main()
