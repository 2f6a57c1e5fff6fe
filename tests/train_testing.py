"""Shared by the tests of `zeus train` and `zeus job`: a node, a database, and programs that train."""

import json
import os
import subprocess
import sys

from run_testing import RunTestCase
from sim_testing import ZEUS, wait_until

# Reaches the accuracy 0.9 after as many epochs as EPOCHS says of its batch size. Each epoch takes
# SECONDS; what it reports of itself, it says on a clock of its own.
PROGRAM = r'''
import argparse, json, os, signal, socket, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--epochs", type=json.loads, default={})
parser.add_argument("--seconds", type=float, default=0.02)
parser.add_argument("--most", type=int, default=30)
parser.add_argument("--cost", type=float, default=100.0)
parser.add_argument("--start", type=float, default=0.0)
parser.add_argument("--out", default="stdout")
parser.add_argument("--stubborn", action="store_true")
parser.add_argument("--fail-after", type=int)
parser.add_argument("--child")
options = parser.parse_args()
if options.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if options.child:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        os._exit(0)
    with open(options.child, "w") as file:
        file.write(str(child))
needed = options.epochs.get(str(options.batch_size), 5)
for epoch in range(1, options.most + 1):
    time.sleep(options.seconds)
    accuracy = 0.9 * epoch / needed
    report = {"epoch": epoch, "metric": accuracy, "time_seconds": 1.0 * epoch,
              "energy_joules": options.start + options.cost * epoch}
    if options.out == "stdout":
        print(f"epoch {epoch}: val_acc={accuracy:.4f}", flush=True)
    elif options.out == "stderr":
        print(f"epoch {epoch}: val_acc={accuracy:.4f}", file=sys.stderr, flush=True)
    elif options.out in ("line", "post"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.environ["ZEUS_REPORT_SOCKET"])
            body = json.dumps(report)
            if options.out == "post":
                body = ("POST /report HTTP/1.1\r\nHost: zeus\r\nContent-Length: "
                        f"{len(body)}\r\n\r\n{body}")
            else:
                body += "\n"
            connection.sendall(body.encode())
            answer = connection.recv(4096).decode()
            assert '"stop"' in answer, answer
    else:
        with open(options.out, "a") as file:
            file.write(json.dumps(report) + "\n")
    if options.fail_after == epoch:
        sys.exit(42)
'''


class TrainTestCase(RunTestCase):
    def setUp(self):
        super().setUp()
        self.environment["XDG_DATA_HOME"] = self.path("data")
        self.environment["XDG_CONFIG_HOME"] = self.path("config")
        self.environment.pop("ZEUS_SERVER", None)
        self.environment["ZEUS_BINARY"] = ZEUS
        self.program = self.path("program.py")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)

    def options(self, job="mnist", sizes="32,64,128", default="64", source=None):
        source = ["--metric-regex", r"val_acc=([0-9.]+)"] if source is None else source
        return ["--job", job, "--batch-sizes", sizes, "--default", default, "--target", "0.9",
                "--max-epochs", "40", *source]

    def itself(self):
        """For programs that measure themselves: there need not be a GPU."""
        return ["--gpu-model", "V100", "--max-power", "250"]

    def command(self, *arguments):
        return ["--", sys.executable, "-B", self.program, "--batch-size", "{batch_size}",
                *arguments]

    def train(self, *arguments, code=0):
        done = subprocess.run([ZEUS, "train", *arguments], env=self.environment, text=True,
                              capture_output=True, timeout=280)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def start_train(self, *arguments):
        process = subprocess.Popen([ZEUS, "train", *arguments], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def job(self, *arguments, code=0):
        done = subprocess.run([ZEUS, "job", *arguments], env=self.environment, text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def trials(self, job="mnist"):
        return json.loads(self.job("trials", job, "--json"))

    def reported_epochs(self, job="mnist"):
        """Returns the number of epochs of the first trial; 0 while there is none."""
        done = subprocess.run([ZEUS, "job", "trials", job, "--json"], env=self.environment,
                              text=True, capture_output=True, timeout=60)
        trials = json.loads(done.stdout) if done.returncode == 0 else []
        return trials[0]["epochs"] if trials else 0

    def limit(self, gpu=0):
        done = subprocess.run([ZEUS, "doctor", "--json"], env=self.environment, timeout=60,
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["gpus"][gpu]["power_limit"]["current"]

    @staticmethod
    def runs(pid):
        """Whether there is such a process, and it is not a zombie."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def read_pid(self, name):
        path = self.path(name)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "no child")
        with open(path, encoding="utf-8") as file:
            return int(file.read())
