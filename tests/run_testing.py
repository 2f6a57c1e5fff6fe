"""Shared by the tests of `zeus run`."""

import json
import os
import pty
import subprocess

from sim_testing import ZEUS, SimTestCase


class RunTestCase(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)

    def start(self, gpus="2xV100"):
        self.sim("start", "--gpus", gpus)
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def zeus(self, *arguments, **options):
        options.setdefault("env", self.environment)
        return subprocess.run([ZEUS, "run", *arguments], capture_output=True, text=True,
                              timeout=60, **options)

    def popen(self, *arguments, **options):
        process = subprocess.Popen([ZEUS, "run", *arguments], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream and not stream.closed:
                stream.close()

    def result(self, *arguments, code=0):
        """The JSON of a run that ended with `code`."""
        file = self.path("result.json")
        done = self.zeus("--json", file, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        with open(file, encoding="utf-8") as text:
            return json.load(text)

    def seen(self, *words, **variables):
        """Returns what a terminal of 80 columns is sent."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen(
            ["sh", "-c", 'stty cols 80 rows 24; exec "$@"', "sh", ZEUS, *words],
            env=self.environment | variables, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # No process has the other end open any more.
                break
            text += piece
        process.wait(timeout=60)
        return text.decode().replace("\r\n", "\n")
