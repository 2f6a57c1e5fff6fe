"""The daemon on a node of Kubernetes: it asks a kubelet (real gRPC and protobuf libraries) which container has which GPU,
and gives each its energy. Kubelets that are broken, slow or hostile cost it nothing but that knowledge."""

import os
import re
import socket
import subprocess
import threading
import unittest

from sim_testing import ZEUS, wait_until
from zeusd_testing import ZeusdTestCase

try:
    import grpc
    from kubelet_testing import RULES, Kubelet, RunningPod, group_root, pod_resources
    MISSING = None
except ImportError as failure:
    MISSING = f"{failure}: apt-get install python3-grpcio python3-protobuf"


@unittest.skipIf(MISSING, str(MISSING))
@unittest.skipUnless(os.geteuid() == 0, "control groups need root")
class ZeusdPodsTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.kubelet_path = os.path.join(self.folder, "kubelet.sock")
        self.logs = os.path.join(self.folder, "pods")
        os.mkdir(self.logs)
        self.kubelet = None

    def start(self, configuration=None, kubelet=True):
        configuration = RULES if configuration is None else configuration
        if kubelet:
            self.start_kubelet()
        self.start_daemon(configuration, "--pod-resources", self.kubelet_path, "--pod-logs", self.logs)
        self.gpus = self.uuids()

    def start_kubelet(self):
        self.kubelet = Kubelet(self.kubelet_path)
        self.addCleanup(self.kubelet.stop)

    def pods_of_node(self):
        return self.ask("GET", "/v1/node").json["pods"]

    def jobs(self):
        return {job["id"]: job for job in self.ask("GET", "/v1/jobs").json["jobs"] if job["state"] == "running"}

    def job(self, name):
        return self.ask("GET", "/v1/jobs/" + name.replace("/", "%2F")).json

    def wait_for_jobs(self, *names):
        wait_until(lambda: set(self.jobs()) == {f"k8s:{name}" for name in names}, f"the jobs are {names}")

    def energy(self, uuid, name="zeus_pod_energy_joules_total"):
        """The energy of each container on a device, by its labels in the metrics."""
        series = re.findall(rf'\n{name}{{namespace="([^"]*)",pod="([^"]*)",container="([^"]*)",uuid="{uuid}"}} (\S+)',
                            self.ask("GET", "/metrics").text)
        return {"/".join(labels): float(value) for *labels, value in series}

    def pod(self, namespace, name):
        if group_root() is None:
            self.skipTest("control groups cannot be made here")
        return RunningPod(self, self.logs, namespace, name)

    def work(self, pod, watts="90"):
        load = self.start_load("--gpu", "0", "--watts", watts)
        pod.add(load)
        # Before its group goes.
        self.addCleanup(lambda: (load.kill(), load.communicate()) if load.poll() is None else None)
        return load

    # --- whose energy it is ---

    def test_a_container_gets_the_energy_of_its_gpu_under_its_name(self):
        self.pod("team-a", "train-0")
        self.pod("team-b", "serve-7f9c-x")
        self.start()
        self.kubelet.pods = [("team-a", "train-0", {"main": {"nvidia.com/gpu": [self.gpus[0]]}, "sidecar": {}}),
                             ("team-b", "serve-7f9c-x", {"llm": {"nvidia.com/gpu": [self.gpus[1]], "rdma/hca": ["mlx5"]}}),
                             ("kube-system", "coredns", {"coredns": {}})]
        self.wait_for_jobs("team-a/train-0/main", "team-b/serve-7f9c-x/llm")
        self.assertEqual(self.pods_of_node(), {"kubelet_answers": True, "trouble": None, "containers": 2, "unknown_devices": 0})
        before = self.job("k8s:team-a/train-0/main")["energy_joules"]
        wait_until(lambda: self.job("k8s:team-a/train-0/main")["energy_joules"] > before + 20, "it draws power")
        wait_until(lambda: self.energy(self.gpus[0]).get("team-a/train-0/main", 0) > before, "the metrics name it")
        self.assertEqual(set(self.energy(self.gpus[1])), {"team-b/serve-7f9c-x/llm"})
        metrics = self.ask("GET", "/metrics").text
        self.assertIn('zeus_job_energy_joules_total{job="k8s:team-a/train-0/main",user="",uuid="' + self.gpus[0], metrics)
        self.assertIn("\nzeus_kubelet_up 1\n", metrics)
        self.assertIn("\nzeus_kubelet_containers 2\n", metrics)
        self.kubelet.pods.pop(0)
        self.wait_for_jobs("team-b/serve-7f9c-x/llm")
        kept = self.job("k8s:team-a/train-0/main")
        self.assertEqual((kept["state"], kept["labels"]["pod"]), ("ended", "train-0"))
        self.assertGreater(kept["energy_joules"], before)

    def test_pods_that_share_a_gpu_get_parts_that_add_up_to_it(self):
        pods = {name: self.pod("team-a", name) for name in ("one", "two")}
        self.start()
        loads = [self.work(pods["one"]), self.work(pods["two"])]
        self.kubelet.pods = [("team-a", name, {"main": {"nvidia.com/gpu.shared": [f"{self.gpus[0]}::{replica}"]}})
                             for replica, name in enumerate(pods)]
        self.wait_for_jobs("team-a/one/main", "team-a/two/main")
        first = self.parts()
        wait_until(lambda: all(self.energy(self.gpus[0]).get(f"team-a/{name}/main", 0) > 150 for name in pods),
                   "both pods get energy")
        last = self.parts()
        one, two, shared, device = (last[key] - first[key] for key in ("one", "two", "shared", "device"))
        self.assertGreater(min(one, two), 0.5 * max(one, two), (first, last))
        # The counter of the device is read at the scrape, the parts at the last booking, five seconds before at most.
        self.assertLessEqual(one + two + shared, device + 5 * 250, (first, last))
        self.assertGreaterEqual(one + two + shared, device - 5 * 250, (first, last))
        for load in loads:
            load.kill()
            load.communicate()
        for pod in pods.values():
            pod.end()
        self.wait_for_jobs()
        # Now nothing is under way: the parts of both and what is nobody's are what was booked of the device.
        for name in pods:
            self.assertTrue(self.job(f"k8s:team-a/{name}/main")["shares"][0]["shared"])

    def parts(self):
        metrics = self.ask("GET", "/metrics").text

        def value(pattern):
            return sum(float(number) for number in re.findall(pattern, metrics))

        uuid = self.gpus[0]
        return {"one": value(rf'\nzeus_pod_energy_joules_total{{[^}}]*pod="one"[^}}]*{uuid}"}} (\S+)'),
                "two": value(rf'\nzeus_pod_energy_joules_total{{[^}}]*pod="two"[^}}]*{uuid}"}} (\S+)'),
                "shared": value(rf'\nzeus_shared_idle_joules_total{{uuid="{uuid}"}} (\S+)'),
                "device": value(rf'\nzeus_gpu_energy_joules_total{{[^}}]*gpu="0"[^}}]*}} (\S+)')}

    def test_a_pod_that_starts_is_seen_before_the_next_question_is_due(self):
        self.pod("team-a", "first")
        self.start()
        self.kubelet.pods = [("team-a", "late", {"main": {"nvidia.com/gpu": [self.gpus[0]]}})]
        self.kubelet.wait_for_calls(1)
        self.assertEqual(self.jobs(), {}, "it has no control group")
        late = self.pod("team-a", "late")
        self.wait_for_jobs("team-a/late/main")
        late.end()
        self.wait_for_jobs()  # The kubelet lists it still.

    def test_slices_and_claims(self):
        self.pod("team-a", "sliced")
        self.pod("team-a", "claimed")
        self.start()
        self.kubelet.pods = [("team-a", "sliced", {"main": {"nvidia.com/mig-1g.5gb": [f"MIG-{self.gpus[1]}/7/0"]}}),
                             ("team-a", "claimed", {"main": {("gpu.nvidia.com", "node-1"): ["gpu-0"]}})]
        self.wait_for_jobs("team-a/sliced/main")
        self.assertEqual(self.jobs()["k8s:team-a/sliced/main"]["devices"], [self.gpus[1]])
        wait_until(lambda: self.pods_of_node()["unknown_devices"] == 1, "nobody says which GPU the claim is")

    # --- the daemon and the kubelet come and go ---

    def test_a_killed_daemon_knows_the_pods_again(self):
        self.pod("team-a", "train-0")
        self.start()
        self.kubelet.pods = [("team-a", "train-0", {"main": {"nvidia.com/gpu": [self.gpus[0]]}})]
        self.wait_for_jobs("team-a/train-0/main")
        self.kubelet.stop()
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.start(kubelet=False)  # While there is no kubelet, what was known holds.
        self.assertEqual(set(self.jobs()), {"k8s:team-a/train-0/main"})
        self.start_kubelet()
        self.wait_for_jobs()  # This one has no pods.
        self.assertTrue(self.pods_of_node()["kubelet_answers"])

    def test_without_a_kubelet_everything_else_works_and_doctor_says_so(self):
        self.start(kubelet=False)
        wait_until(lambda: self.pods_of_node()["trouble"], "the daemon has asked")
        self.assertIn(self.kubelet_path, self.pods_of_node()["trouble"])
        self.assertIn("\nzeus_kubelet_up 0\n", self.ask("GET", "/metrics").text)
        doctor = subprocess.run([ZEUS, "doctor", "--seconds", "0"], env=self.environment | {"ZEUSD_SOCK_PATH": self.socket_path},
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("energy by pod", doctor.stdout, doctor.stderr)
        self.assertIn("pod-resources", doctor.stdout)
        self.assertEqual(self.ask("GET", "/v1/readings").status, 200)
        self.start_kubelet()
        wait_until(lambda: self.pods_of_node()["kubelet_answers"], "it is found when it comes")

    # --- kubelets that mean harm ---

    def make_it_ask(self):
        """The daemon asks when a pod's control group appears, and does not wait for its next look then."""
        self.pod("kube-system", f"new-{len(os.listdir(self.logs))}")

    def trouble_of(self, answer):
        """The daemon's complaint about a kubelet that answers like this, while it serves others as before."""
        self.kubelet.answer = answer
        self.make_it_ask()
        self.kubelet.wait_for_calls(1)
        wait_until(lambda: self.pods_of_node()["trouble"], "the answer is refused")
        self.assertEqual(self.ask("GET", "/readyz").status, 200)
        self.assertEqual(set(self.jobs()), {"k8s:team-a/train-0/main"}, "what was known holds")
        trouble = self.pods_of_node()["trouble"]
        self.kubelet.answer = None
        self.make_it_ask()
        wait_until(lambda: not self.pods_of_node()["trouble"], "a good answer is believed again")
        return trouble

    def test_answers_that_are_none(self):
        self.pod("team-a", "train-0")
        self.start()
        self.kubelet.pods = [("team-a", "train-0", {"main": {"nvidia.com/gpu": [self.gpus[0]]}})]
        self.wait_for_jobs("team-a/train-0/main")
        whole = pod_resources(self.kubelet.pods)
        self.assertIn("malformed protobuf", self.trouble_of(lambda _: whole[:-1]))
        forged = pod_resources([('a"} 1\nzeus_fake', "p", {"c": {"nvidia.com/gpu": [self.gpus[1]]}})])
        self.assertIn("no name of a namespace", self.trouble_of(lambda _: forged))
        # On a busy machine it is late before it is too large.
        self.assertRegex(self.trouble_of(lambda _: b"\x0a" + b"x" * (17 << 20)), "larger than|no answer in time")

        def refuse(context):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests")

        self.assertIn("code 8: too many requests", self.trouble_of(refuse))

    def test_a_kubelet_that_never_answers_is_given_up(self):
        self.start()
        over = threading.Event()
        self.addCleanup(over.set)
        self.kubelet.answer = lambda _: (over.wait(60), b"")[1]
        self.kubelet.wait_for_calls(1)
        wait_until(lambda: "no answer in time" in (self.pods_of_node()["trouble"] or ""), "it is given up")

    def test_a_socket_of_something_else(self):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.kubelet_path)
            listening.listen()
            self.start(kubelet=False)
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                wait_until(lambda: self.pods_of_node()["trouble"], "that is no HTTP/2")
        self.assertEqual(self.ask("GET", "/readyz").status, 200)


if __name__ == "__main__":
    unittest.main()
