"""Shared by the tests of recurring jobs: a server and a monitor for every test."""

import json
import os
import tempfile
import urllib.request

from node_testing import NodeTestCase

from zeus.monitor import ZeusMonitor
from zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec, LocalServer


def spec(**changes) -> JobSpec:
    fields = {"job_id_prefix": "mnist", "batch_sizes": [32, 64, 128], "default_batch_size": 64,
              "job_id": "mnist-1", "target_metric": 0.9, "max_epochs": 6, "mab_seed": 7}
    return JobSpec(**{**fields, **changes})


def ask(server: LocalServer, path: str) -> dict:
    with urllib.request.urlopen(server.url + path, timeout=30) as answer:
        return json.load(answer)


def _put_back(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


class JobTestCase(NodeTestCase):
    GPUS = "2xA100"
    TIME_SCALE = 20

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="zeus-job-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        before = os.environ.get("XDG_DATA_HOME")
        os.environ["XDG_DATA_HOME"] = self.folder
        self.addCleanup(_put_back, "XDG_DATA_HOME", before)
        self.server = LocalServer()
        self.addCleanup(self.server.stop)
        self.monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])
        self.addCleanup(self.monitor.close)

    def optimizer(self, job: JobSpec | None = None, **options) -> BatchSizeOptimizer:
        made = BatchSizeOptimizer(self.monitor, self.server.url, job or spec(), **options)
        self.addCleanup(made.close)
        return made

    def trial(self, number: int = 1, job: str = "mnist-1") -> dict:
        return ask(self.server, f"/v1/jobs/{job}/trials/{number}")
