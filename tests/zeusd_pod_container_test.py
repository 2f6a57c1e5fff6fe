"""A pod of a user, as packaging/kubernetes/examples has it: a container of runc with the security context of the example,
the daemon's sockets and nothing else. It reads, sets the limit of its own GPU within its bounds, and is no administrator;
when it dies, the limit is put back."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from sim_testing import wait_until
from zeusd_testing import CLIENT, LIMIT, ZeusdTestCase

try:
    import yaml
    from kubelet_testing import RULES, Kubelet, RunningPod, group_root
    MISSING = None
except ImportError as failure:
    MISSING = f"{failure}: apt-get install python3-grpcio python3-protobuf python3-yaml"

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "kubernetes" / "examples" / "job.yaml"
def runtime_config(spec, pod):
    """The configuration that a runtime makes of the pod's specification."""
    container = spec["containers"][0]
    context = container["securityContext"] | spec["securityContext"]
    config = json.loads(subprocess.run(["sh", "-c", "cd $(mktemp -d) && runc spec && cat config.json && rm -r $PWD"],
                                       capture_output=True, text=True, check=True).stdout)
    config["root"] = {"path": "rootfs", "readonly": True}
    process = config["process"]
    process["terminal"] = False
    process["user"] = {"uid": context["runAsUser"], "gid": context["runAsGroup"]}
    process["noNewPrivileges"] = not context["allowPrivilegeEscalation"]
    added = [f"CAP_{name}" for name in context["capabilities"].get("add", [])]
    if context["capabilities"]["drop"] != ["ALL"]:
        raise AssertionError("the example keeps the capabilities that a runtime gives")
    process["capabilities"] = {kind: added for kind in ("bounding", "effective", "permitted", "inheritable", "ambient")}
    config["linux"]["cgroupsPath"] = f"{pod.path}/{os.path.basename(pod.container_group)}"
    for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc"):
        config["mounts"].append({"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "ro"]})
    return config


@unittest.skipIf(MISSING, str(MISSING))
@unittest.skipUnless(os.geteuid() == 0, "containers need root")
class ZeusdPodContainerTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        if shutil.which("runc") is None:
            self.skipTest("runc is not installed")
        if group_root() is None:
            self.skipTest("control groups cannot be made here")
        # As on a node: a folder for the sockets, which pods see, and others that they do not see.
        self.sockets = os.path.join(self.folder, "run")
        logs = os.path.join(self.folder, "logs")
        for folder in (self.sockets, logs):
            os.mkdir(folder)
        self.socket_path = os.path.join(self.sockets, "zeusd.sock")
        kubelet_path = os.path.join(self.folder, "kubelet.sock")
        self.kubelet = Kubelet(kubelet_path)
        self.addCleanup(self.kubelet.stop)
        self.pod = RunningPod(self, logs, "team-a", "train-0")
        self.start_daemon(RULES, "--pod-resources", kubelet_path, "--pod-logs", logs, "--state-dir", self.folder)
        self.gpus = self.uuids()
        self.kubelet.pods = [("team-a", "train-0", {"train": {"nvidia.com/gpu": [self.gpus[0]]}})]
        wait_until(lambda: self.ask("GET", "/v1/jobs").json["jobs"], "the daemon knows the pod")
        self.make_bundle()

    def make_bundle(self):
        self.bundle = tempfile.mkdtemp(prefix="zeusd-pod-")
        self.addCleanup(shutil.rmtree, self.bundle, True)
        os.chmod(self.bundle, 0o755)
        for folder in ("rootfs", "public"):
            os.mkdir(os.path.join(self.bundle, folder))
        for folder in ("usr", "lib", "lib64", "bin", "etc", "proc", "dev", "sys", "run/zeusd", "public"):
            os.makedirs(os.path.join(self.bundle, "rootfs", folder))
        client = shutil.copy(CLIENT, os.path.join(self.bundle, "public", "client.py"))
        os.chmod(client, 0o644)
        with open(EXAMPLE, encoding="utf-8") as file:
            spec = yaml.safe_load(file)["spec"]["template"]["spec"]
        mount = spec["containers"][0]["volumeMounts"][0]
        self.config = runtime_config(spec, self.pod)
        self.config["mounts"] += [
            {"destination": mount["mountPath"], "type": "bind", "source": self.sockets,
             "options": ["rbind", "ro" if mount["readOnly"] else "rw"]},
            {"destination": "/public", "type": "bind", "source": os.path.join(self.bundle, "public"), "options": ["rbind", "ro"]}]
        self.name = f"zeusd-pod-{os.getpid()}"
        done = subprocess.run(self.run_command("/bin/true"), capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            self.skipTest(f"runc cannot run a container here: {done.stderr.strip()[-300:]}")

    def run_command(self, *words):
        self.config["process"]["args"] = list(words)
        with open(os.path.join(self.bundle, "config.json"), "w", encoding="utf-8") as file:
            json.dump(self.config, file)
        # runc removes the control group with the container.
        os.makedirs(self.pod.container_group, exist_ok=True)
        return ["runc", "--root", os.path.join(self.bundle, "state"), "run", "--bundle", self.bundle, self.name]

    def inside(self, what, method, target, body=None):
        words = ["/usr/bin/python3", "-B", "/public/client.py", "/run/zeusd/zeusd.sock", what, method, target]
        return self.run_command(*words, *([json.dumps(body)] if body else []))

    def ask_inside(self, method, target, body=None):
        done = subprocess.run(self.inside("ask", method, target, body), capture_output=True, text=True, timeout=120,
                              check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        status, text = done.stdout.split(" ", 1)
        return int(status), json.loads(text) if text.strip() else None

    def test_it_reads_and_is_known_as_its_pod(self):
        status, body = self.ask_inside("GET", "/v1/whoami")
        self.assertEqual(status, 200, body)
        self.assertEqual((body["uid"], body["contained"], body["rules"]), (1000, True, ["defaults", "pods of team a"]), body)
        self.assertEqual(body["jobs"], ["k8s:team-a/train-0/train"])
        self.assertNotIn("admin", body["scopes"])
        status, body = self.ask_inside("GET", "/v1/readings")
        self.assertEqual((status, len(body["devices"])), (200, 2), body)
        self.assertEqual(self.ask_inside("GET", "/v1/jobs/k8s:team-a%2Ftrain-0%2Ftrain")[0], 200)

    def test_it_sets_its_own_gpu_within_its_bounds_and_nothing_else(self):
        for body, expected in ((self.lease(200), 201), (self.lease(120), 422), (self.lease(200, gpu=1), 403)):
            status, answer = self.ask_inside("POST", "/v1/leases", body)
            self.assertEqual(status, expected, answer)
        for method, target, body in (("POST", "/v1/restore", {"all": True}), ("PUT", "/v1/budget", {"valid_seconds": 9}),
                                     ("POST", "/v1/jobs", {"id": "slurm:1", "uid": 1000, "devices": [self.gpus[1]]}),
                                     ("DELETE", "/v1/jobs/k8s:team-a%2Ftrain-0%2Ftrain", None)):
            self.assertEqual(self.ask_inside(method, target, body)[0], 403, (method, target))
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "each of these containers has ended")

    def test_its_limit_is_put_back_when_it_dies(self):
        command = self.inside("hold", "POST", "/v1/leases", self.lease(200))
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        status = process.stdout.readline().split(" ", 1)[0]
        self.assertEqual((status, self.limits()[0]), ("201", 200))
        subprocess.run([*command[:3], "kill", self.name, "KILL"], check=True)
        process.wait(60)
        wait_until(lambda: self.limits()[0] == LIMIT, "the limit of a killed pod is put back")

    def test_it_has_no_capability_and_cannot_touch_the_sockets(self):
        script = ("grep -E '^(CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs)' /proc/self/status; "
                  "rm -f /run/zeusd/zeusd.sock; touch /run/zeusd/x; test -S /run/zeusd/zeusd.sock && echo there")
        done = subprocess.run(self.run_command("/bin/sh", "-c", script), capture_output=True, text=True, timeout=60,
                              check=False, stdin=subprocess.DEVNULL)
        lines = done.stdout.split("\n")
        self.assertEqual([line.split(":")[1].strip() for line in lines[:5]], ["0" * 16] * 4 + ["1"], done.stdout)
        self.assertIn("there", lines)
        self.assertEqual(sorted(os.listdir(self.sockets)), ["board.sock", "zeusd.sock"])

    def test_another_namespace_is_granted_nothing(self):
        self.pod.end()
        logs = os.path.dirname(self.pod.log)
        self.pod = RunningPod(self, logs, "team-b", "train-0")
        self.kubelet.pods = [("team-b", "train-0", {"train": {"nvidia.com/gpu": [self.gpus[0]]}})]
        self.config["linux"]["cgroupsPath"] = f"{self.pod.path}/{os.path.basename(self.pod.container_group)}"
        status, body = self.ask_inside("POST", "/v1/leases", self.lease(200))
        self.assertEqual(status, 403, body)


if __name__ == "__main__":
    unittest.main()
