"""The units of the daemon are valid, and confine it as tightly as they promise."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

UNITS = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "systemd"
NAMES = ("zeusd.service", "zeusd.socket", "zeusd-board.socket", "zeusd-restore.service")
MOST_EXPOSURE = 30  # Tenths, as --threshold counts.


def settings(text):
    """Every "Name=value" of a unit, in order."""
    return [tuple(line.split("=", 1)) for line in text.splitlines()
            if re.match(r"[A-Za-z]+=", line)]


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class SystemdAnalyzeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in NAMES:
            text = (UNITS / name).read_text().replace("/usr/sbin/zeusd", shutil.which("true"))
            (self.folder / name).write_text(text)

    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True,
                              timeout=120, cwd=self.folder)

    def verify(self):
        return self.analyze("verify", "--man=no", *(str(self.folder / name) for name in NAMES))

    def test_the_units_are_valid(self):
        done = self.verify()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_misspelt_setting_would_be_found(self):
        unit = self.folder / "zeusd.service"
        unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSeconds="))
        self.assertIn("WatchdogSeconds", self.verify().stderr)

    def exposure(self, unit="zeusd.service"):
        return self.analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE}",
                            "--no-pager", unit)

    def test_the_services_are_confined(self):
        for unit in ("zeusd.service", "zeusd-restore.service"):
            with self.subTest(unit=unit):
                done = self.exposure(unit)
                self.assertEqual(done.returncode, 0, done.stdout[-300:] + done.stderr)
                self.assertRegex(done.stdout, "Overall exposure level")

    def test_a_service_without_confinement_would_be_found(self):
        unit = self.folder / "zeusd.service"
        unit.write_text(re.sub(r"(?m)^(Restrict|SystemCall|Protect|Private).*\n", "",
                               unit.read_text()))
        self.assertNotEqual(self.exposure().returncode, 0)


class UnitTest(unittest.TestCase):
    def test_every_socket_names_its_descriptor_and_the_service_takes_both(self):
        service = dict(settings((UNITS / "zeusd.service").read_text()))
        self.assertEqual(service["Sockets"].split(), ["zeusd.socket", "zeusd-board.socket"])
        for unit, descriptor, kind in (
                ("zeusd.socket", "http", "ListenStream"),
                ("zeusd-board.socket", "board", "ListenSequentialPacket")):
            with self.subTest(unit=unit):
                socket = dict(settings((UNITS / unit).read_text()))
                self.assertEqual(socket["FileDescriptorName"], descriptor)
                self.assertTrue(socket[kind].startswith("/run/zeusd/"))
                self.assertEqual(socket["SocketMode"], "0666")
                self.assertEqual(socket["Service"], "zeusd.service")

    def test_calls_that_are_needed_are_allowed_after_those_that_are_not(self):
        filters = [value for name, value in settings((UNITS / "zeusd.service").read_text())
                   if name == "SystemCallFilter"]
        self.assertTrue(filters[0].startswith("@"))
        self.assertEqual(filters[-1], "perf_event_open pidfd_open")

    def test_what_repairs_after_the_service_may_do_what_the_service_may(self):
        service = settings((UNITS / "zeusd.service").read_text())
        repair = settings((UNITS / "zeusd-restore.service").read_text())
        self.assertIn(("OnFailure", "zeusd-restore.service"), service)
        needed = ("User", "AmbientCapabilities", "RuntimeDirectory", "RuntimeDirectoryPreserve", "DeviceAllow")
        for name in needed:
            self.assertEqual([value for key, value in repair if key == name],
                             [value for key, value in service if key == name], name)

    def test_the_sockets_survive_a_stop_of_the_service(self):
        service = dict(settings((UNITS / "zeusd.service").read_text()))
        self.assertEqual(service["RuntimeDirectoryPreserve"], "yes")


if __name__ == "__main__":
    unittest.main()
