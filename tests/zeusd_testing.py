"""Shared by the tests of zeusd: a simulated node with a daemon of their own, and ways to talk to it."""

import json
import os
import shutil
import subprocess
import tempfile

from serve_testing import Answer
from sim_testing import PipedProgram, SimTestCase, ZEUS
from zeusd_client import UnixConnection

ZEUSD = os.environ.get("ZEUSD_BINARY", os.path.join(os.path.dirname(ZEUS), "zeusd"))
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zeusd_client.py")
LIMIT = 250  # Watts of an undisturbed GPU.
LOWEST = 100
# One user may control GPUs down to 150 W, all others may look.
RESEARCHER, STRANGER = 12001, 12002
CONFIGURATION = f"""
[defaults]
scopes = ["gpu-read"]

[[rule]]
name = "researchers"
match = {{ uids = [{RESEARCHER}] }}
scopes = ["gpu-read", "gpu-control"]
gpu_power_limit = {{ min_watts = 150 }}
"""


class Daemon(PipedProgram):
    """A `zeusd serve` process that is ready."""

    def __init__(self, arguments, environment, prefix=()):
        self.process = subprocess.Popen([*prefix, ZEUSD, "serve", *arguments], env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline()
        if not self.ready.startswith("zeusd: ready on "):
            raise AssertionError(f"{self.ready!r} {self.process.communicate()[1]!r}")


class Stream:
    """Server-sent events of the daemon, as they come."""

    def __init__(self, connection, target, headers=None):
        self.connection = connection
        connection.request("GET", target, headers=headers or {})
        self.response = connection.getresponse()
        self.status = self.response.status

    def events(self):
        """Pairs of the event's name and its data."""
        name, data = "message", None
        for line in self.response:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text[7:]
            elif text.startswith("data: "):
                data = json.loads(text[6:])
            elif not text and data is not None:
                yield name, data
                name, data = "message", None

    def close(self):
        self.connection.close()


class ZeusdTestCase(SimTestCase):
    """A node of two GPUs. The daemon of start_daemon() ends with the test."""

    GPUS = "2xV100"

    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY", "LOGS_DIRECTORY", "STATE_DIRECTORY"):
            self.environment.pop(name, None)
        self.sim("start", "--gpus", self.GPUS)
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()
        # Short, for the path of a Unix socket, and where other users may look.
        folder = tempfile.TemporaryDirectory(prefix="zeusd-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.folder = folder.name
        self.socket_path = os.path.join(folder.name, "zeusd.sock")
        self.audit_path = os.path.join(folder.name, "audit.jsonl")
        self.config_path = os.path.join(folder.name, "zeusd.toml")
        self.daemon = None

    def configure(self, text):
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.config_path, 0o644)

    def start_daemon(self, configuration=None, *arguments, prefix=()):
        if configuration is not None:
            self.configure(configuration)
        words = ["--socket-path", self.socket_path, *arguments]
        if os.path.exists(self.config_path):
            words += ["--config", self.config_path]
        self.daemon = Daemon(words, self.environment, prefix)
        self.addCleanup(self.daemon.kill)
        return self.daemon

    def ask(self, method, target, body=None, headers=None, connection=None):
        """One request, over a connection of its own unless one is given."""
        own = connection is None
        connection = connection or UnixConnection(self.socket_path)
        try:
            text = json.dumps(body) if body is not None else None
            connection.request(method, target, body=text, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            if own:
                connection.close()

    def uuids(self):
        return [gpu["uuid"] for gpu in self.ask("GET", "/v1/node").json["gpus"]]

    def limits(self):
        """The limits of the GPUs in watts, past the daemon."""
        done = subprocess.run([ZEUS, "doctor", "--json", "--seconds", "0"], env=self.environment, text=True,
                              capture_output=True, timeout=60, check=False)
        return [gpu["power_limit"]["current"] for gpu in json.loads(done.stdout)["gpus"]]

    def request(self, watts, gpu=0, how="exactly"):
        return {"device": self.uuids()[gpu], "knob": "gpu_power_limit", how: {"watts": watts}}

    def lease(self, watts=200, gpu=0, how="exactly", **fields):
        return {"name": "test", "requests": [self.request(watts, gpu, how)], **fields}

    def client(self, uid, *words):
        """The command of zeusd_client.py, perhaps as another user."""
        # Other users may be unable to read the folder of the tests.
        client = os.path.join(self.folder, "client.py")
        if not os.path.exists(client):
            shutil.copy(CLIENT, client)
            os.chmod(client, 0o644)
        command = ["/usr/bin/python3", client, self.socket_path, *words]
        if uid is None:
            return command
        return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *command]

    def hold(self, body, uid=None, target="/v1/leases"):
        """A process, perhaps of another user, that asks once and lives: the process, the status and the answer."""
        words = ["hold", "POST", target] + ([json.dumps(body)] if body is not None else [])
        return self.hold_command(self.client(uid, *words))

    def started(self, command):
        """A process with pipes that ends with the test."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def hold_command(self, command):
        """A command of client(): its process, the status and the answer."""
        holder = self.started(command)
        status, text = holder.stdout.readline().split(" ", 1)
        return holder, int(status), json.loads(text) if text.strip() else None

    @staticmethod
    def run_as(uid, command):
        """Returns the output of a command of another user."""
        user = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
        return subprocess.run([*user, *command], capture_output=True, text=True, timeout=60, check=True,
                              stdin=subprocess.DEVNULL).stdout

    def ask_as(self, uid, method, target, body=None):
        """One request of another user: status and answer."""
        return self.ask_by([], method, target, body, uid)

    def ask_by(self, prefix, method, target, body=None, uid=None):
        """One request of a process that is started by these words: status and answer."""
        words = ["ask", method, target] + ([json.dumps(body)] if body is not None else [])
        done = subprocess.run([*prefix, *self.client(uid, *words)], capture_output=True, text=True, timeout=60, check=True,
                              stdin=subprocess.DEVNULL)
        status, text = done.stdout.split(" ", 1)
        return int(status), json.loads(text) if text.strip().startswith(("{", "[")) else None
