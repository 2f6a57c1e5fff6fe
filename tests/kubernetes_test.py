"""The manifests of packaging/kubernetes: valid for a current Kubernetes, consistent with each other and with the programs
they start, and as harmless as docs/kubernetes.md says."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
    MISSING = None
except ImportError as failure:
    MISSING = f"{failure}: apt-get install python3-yaml"

from sim_testing import ZEUS
from zeusd_testing import ZEUSD

TESTS = pathlib.Path(__file__).resolve().parent
MANIFESTS = TESTS.parent / "packaging" / "kubernetes"
sys.path.insert(0, str(TESTS.parent / "tools"))
import fetch_llm  # noqa: E402  (It is found by the line above.)

# As daemon.md has them: nothing else may be added.
DAEMON_CAPABILITIES = {"SYS_ADMIN", "PERFMON", "DAC_READ_SEARCH", "DAC_OVERRIDE", "SYS_PTRACE"}
# Objects without a namespace.
GLOBAL = {"Namespace", "PersistentVolume", "ClusterRole", "ClusterRoleBinding"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def plain_documents():
    """Every object as it stands in the files, with its place; patches of overlays are parts of objects."""
    found = []
    patches = {path.parent / patch["path"] for path in kustomizations() for patch in read(path)[0].get("patches", [])}
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        if path.name == "kustomization.yaml" or path in patches:
            continue
        found += [(f"{path.relative_to(MANIFESTS)} {one['kind']}/{one['metadata']['name']}", one) for one in read(path)]
    return found


def kustomizations():
    return sorted(MANIFESTS.rglob("kustomization.yaml"))


def pod_specs(document):
    """The specifications of pods in an object."""
    kind, spec = document["kind"], document.get("spec", {})
    if kind in ("DaemonSet", "Deployment", "Job"):
        return [spec["template"]["spec"]]
    if kind == "CronJob":
        return [spec["jobTemplate"]["spec"]["template"]["spec"]]
    if kind == "PyTorchJob":
        return [replica["template"]["spec"] for replica in spec["pytorchReplicaSpecs"].values()]
    return []


def containers_of(spec):
    return spec.get("initContainers", []) + spec["containers"]


def described_options(*command):
    """The options that the help of a program names."""
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=True)
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", done.stdout))


@unittest.skipIf(MISSING, str(MISSING))
class KubernetesTest(unittest.TestCase):
    def all_pods(self):
        return [(name, document, spec) for name, document in plain_documents() for spec in pod_specs(document)]

    def validate(self, documents):
        try:
            models = fetch_llm.fetch("kubernetes-models")
        except fetch_llm.Unavailable as reason:
            self.skipTest(str(reason))
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump([{"name": name, "document": document} for name, document in documents], file)
            file.flush()
            done = subprocess.run(["node", str(TESTS / "kubernetes_models" / "validate.mjs"), str(models), file.name],
                                  capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def built(self, folder):
        """The objects that kubectl builds from a folder."""
        if shutil.which("kubectl") is None:
            self.skipTest("kubectl is not installed: apt-get install kubernetes-client, or use another one")
        done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    # --- valid ---

    def test_every_object_fits_the_schemas_of_a_current_kubernetes(self):
        known = []
        for name, document in plain_documents():
            if document["apiVersion"].startswith("kubeflow.org/"):
                # Its own fields are not in the schemas; its pods are.
                known += [(f"{name} pod", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"}, "spec": spec})
                          for spec in pod_specs(document)]
            else:
                known.append((name, document))
        self.assertGreater(len(known), 15)
        self.assertEqual(self.validate(known), (0, f"{len(known)} documents are valid\n"))

    def test_mistakes_would_be_found(self):
        daemon = read(MANIFESTS / "daemon" / "daemonset.yaml")[0]

        def with_change(change):
            copy = json.loads(json.dumps(daemon))
            change(copy["spec"]["template"]["spec"])
            return copy

        broken = {"hostPid": with_change(lambda spec: spec.update(hostPid=True)),
                  "readonlyRoot": with_change(lambda spec: spec["containers"][0]["securityContext"].update(readonlyRoot=True)),
                  "terminationGracePeriodSeconds": with_change(lambda spec: spec.update(terminationGracePeriodSeconds="30 s")),
                  "DaemonSets": daemon | {"kind": "DaemonSets"},
                  "required": daemon | {"spec": {}}}
        code, text = self.validate(list(broken.items()))
        self.assertEqual(code, 1)
        for name in broken:
            self.assertRegex(text, rf"(?m)^{name}: .*", text)

    def test_kustomize_builds_every_folder_with_one_namespace_and_pinned_images(self):
        for path in kustomizations():
            namespace = read(path)[0]["namespace"]
            documents = self.built(path.parent)
            self.assertGreater(len(documents), 1)
            for document in documents:
                name = f"{path.parent.name}: {document['kind']}"
                if document["kind"] in GLOBAL:
                    self.assertNotIn("namespace", document["metadata"], name)
                else:
                    self.assertEqual(document["metadata"]["namespace"], namespace, name)
                for spec in pod_specs(document):
                    for container in containers_of(spec):
                        self.assertRegex(container["image"], r"^[^:@]+/[^:@]+(:(?!latest)[\w.-]+|@sha256:[0-9a-f]{64})$", name)
            for document in documents:
                for subject in document.get("subjects", []):
                    self.assertEqual(subject["namespace"], namespace)

    def test_the_overlay_for_claims_gives_the_daemon_one_role_more(self):
        documents = {document["kind"]: document for document in self.built(MANIFESTS / "dra")}
        spec = documents["DaemonSet"]["spec"]["template"]["spec"]
        self.assertEqual((spec["serviceAccountName"], spec["automountServiceAccountToken"]), ("zeusd", True))
        self.assertEqual(documents["ClusterRole"]["rules"], [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
                                                              "verbs": ["get", "list", "watch"]}])
        self.assertTrue(spec["hostPID"], "the rest is as without the overlay")

    # --- harmless ---

    def test_nothing_is_privileged_and_only_the_daemon_has_capabilities(self):
        for name, document, spec in self.all_pods():
            self.assertFalse(spec["automountServiceAccountToken"], name)
            self.assertFalse(spec.get("hostNetwork") or spec.get("hostIPC"), name)
            self.assertEqual(bool(spec.get("hostPID")), document["kind"] == "DaemonSet", name)
            for container in containers_of(spec):
                context = container["securityContext"]
                self.assertNotIn("privileged", context, name)
                self.assertIs(context["allowPrivilegeEscalation"], False, name)
                self.assertEqual(context["capabilities"]["drop"], ["ALL"], name)
                added = set(context["capabilities"].get("add", []))
                self.assertEqual(added, DAEMON_CAPABILITIES if document["kind"] == "DaemonSet" else set(), name)

    def test_only_the_daemon_is_outside_of_apparmor(self):
        found = [name for name, document in plain_documents() if "apparmor" in json.dumps(document)]
        self.assertEqual(found, ["daemon/daemonset.yaml DaemonSet/zeusd"])

    def test_pods_of_users_and_the_server_obey_the_policy_restricted(self):
        # https://kubernetes.io/docs/concepts/security/pod-security-standards/
        allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
        seen = 0
        for name, document, spec in self.all_pods():
            if document["kind"] == "DaemonSet":
                continue
            seen += 1
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True, name)
            self.assertGreater(spec["securityContext"]["runAsUser"], 0, name)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name)
            for volume in spec.get("volumes", []):
                self.assertLessEqual(set(volume) - {"name"}, allowed, name)
        self.assertEqual(seen, 5)

    def test_users_see_the_sockets_and_nothing_that_the_daemon_keeps(self):
        daemon = read(MANIFESTS / "daemon" / "daemonset.yaml")[0]["spec"]["template"]["spec"]
        folders = {volume["name"]: volume["hostPath"]["path"] for volume in daemon["volumes"] if "hostPath" in volume}
        volume, claim = read(MANIFESTS / "examples" / "socket.yaml")
        self.assertEqual(volume["spec"]["hostPath"]["path"], folders["sockets"])
        self.assertEqual(volume["spec"]["claimRef"]["name"], claim["metadata"]["name"])
        self.assertEqual(claim["spec"]["volumeName"], volume["metadata"]["name"])
        for name in ("state", "journal"):
            self.assertFalse((folders[name] + "/").startswith(folders["sockets"] + "/"), name)
        writable = {mount["name"] for mount in daemon["containers"][0]["volumeMounts"] if not mount.get("readOnly")}
        self.assertEqual(writable, {"sockets", "journal", "state", "sys"})
        for name, document, spec in self.all_pods():
            if document.get("metadata", {}).get("namespace") == "team-a":
                for container in containers_of(spec):
                    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
                    self.assertTrue(mounts["zeusd"]["readOnly"], name)

    # --- consistent ---

    def test_mounts_ports_and_selectors_name_what_there_is(self):
        documents = plain_documents()
        pods = {document["metadata"]["name"]: document["spec"]["template"] for _, document in documents
                if document["kind"] in ("DaemonSet", "Deployment")}
        for name, _, spec in self.all_pods():
            volumes = {volume["name"] for volume in spec.get("volumes", [])}
            mounted = {mount["name"] for container in containers_of(spec) for mount in container.get("volumeMounts", [])}
            self.assertEqual(volumes, mounted, name)
            for container in containers_of(spec):
                ports = {port["name"] for port in container.get("ports", [])}
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    if probe in container:
                        self.assertIn(container[probe]["httpGet"]["port"], ports, name)
        for name, document in documents:
            spec = document.get("spec", {})
            selector = spec.get("selector") or spec.get("podSelector") or {}
            labels = selector.get("matchLabels", selector if document["kind"] == "Service" else {})
            if not labels or document["kind"] == "ServiceMonitor":
                continue
            chosen = [pod for pod in pods.values() if labels.items() <= pod["metadata"]["labels"].items()]
            self.assertEqual(len(chosen), 1, name)
            ports = {port["name"]: port["containerPort"] for port in chosen[0]["spec"]["containers"][0]["ports"]}
            for port in spec.get("ports", []):
                self.assertIn(port["targetPort"], ports, name)
            for endpoint in spec.get("podMetricsEndpoints", []):
                self.assertIn(endpoint["port"], ports, name)
            for rule in spec.get("ingress", []):
                for port in rule["ports"]:
                    self.assertIn(port["port"], ports.values(), name)

    def test_the_programs_know_the_options_that_they_are_started_with(self):
        known = {("/usr/sbin/zeusd", "serve"): described_options(ZEUSD, "serve"),
                 ("/usr/bin/zeus", "serve"): described_options(ZEUS, "serve"),
                 ("zeus", "train"): described_options(ZEUS, "train"), ("zeus", "run"): described_options(ZEUS, "run")}
        for name, _, spec in self.all_pods():
            for container in spec["containers"]:
                command = container["command"] + container.get("args", [])
                options = command[2:command.index("--")] if "--" in command else command[2:]
                used = {option.split("=")[0] for option in options if option.startswith("--")}
                self.assertLessEqual(used, known[tuple(command[:2])], name)

    def test_the_configuration_of_the_daemon_is_one(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            path = shutil.copy(MANIFESTS / "daemon" / "zeusd.toml", folder)
            os.chmod(path, 0o644)
            text = pathlib.Path(path).read_text(encoding="utf-8")
            commented = re.sub(r"(?m)^# (?=\[\[rule\]\]|\w+ +=|\w+ = )", "", text)
            self.assertIn("\n[[rule]]\n", commented)
            for content in (text, commented):
                pathlib.Path(path).write_text(content, encoding="utf-8")
                done = subprocess.run([ZEUSD, "check-config", "--config", path], capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
