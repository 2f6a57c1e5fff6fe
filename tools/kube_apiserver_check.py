#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a real kube-apiserver whether it takes the manifests of packaging/kubernetes, and what their service accounts may do.

kube-apiserver and etcd run on free ports of the loopback, in a temporary folder, until the end. Namespaces, their
service accounts and the role of the overlay `dra` are made for real; everything else is a server-side dry run, and so
is every pod that a workload would have, since only a pod meets the admission of pods. A manifest of a kind that the
server does not know is named as not checked; CronJobs are then tried as batch/v1beta1. There is no node: nothing runs.

The programs are found in PATH, or by the variables KUBE_APISERVER, ETCD and KUBECTL. It needs openssl and python3-yaml.
The exit code is 0 where everything that was checked is as it should be, 1 where something is not, 3 where a program is
missing or does not start. docs/kubernetes.md tells how to get the programs."""

import base64
import copy
import dataclasses
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import]

MANIFESTS = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "kubernetes"
FOLDERS = ("daemon", "dra", "server", "monitoring")
NAMESPACES = ("zeus", "zeus-serve", "team-a")
START_SECONDS = 120
Document = dict[str, Any]

# Each service account may (True) and may not do this: account, verb, resource, namespace or "" for all of them.
RESOURCE_SLICES = "resourceslices.resource.k8s.io"
DAEMON = "system:serviceaccount:zeus:zeusd"
RIGHTS = [
    *[(DAEMON, verb, RESOURCE_SLICES, "", True) for verb in ("get", "list", "watch")],
    *[(DAEMON, verb, RESOURCE_SLICES, "", False) for verb in ("create", "update", "patch", "delete", "deletecollection")],
    *[(DAEMON, verb, resource, space, False) for space in ("", "zeus") for verb, resource in (
        ("get", "secrets"), ("list", "secrets"), ("get", "configmaps"), ("list", "pods"), ("create", "pods"),
        ("create", "pods/exec"), ("create", "serviceaccounts/token"), ("patch", "daemonsets.apps"))],
    *[(DAEMON, verb, resource, "", False) for verb, resource in (
        ("list", "nodes"), ("get", "nodes/proxy"), ("patch", "nodes"), ("list", "namespaces"), ("impersonate", "users"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"), ("escalate", "clusterroles.rbac.authorization.k8s.io"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"), ("*", "*"))],
    *[(f"system:serviceaccount:{space}:default", verb, resource, where, False)
      for space in NAMESPACES for where in ("", space)
      for verb, resource in (("list", RESOURCE_SLICES), ("get", "secrets"), ("list", "pods"), ("create", "pods"))],
]


class Unavailable(Exception):
    """The check cannot be made here; the text is the reason."""


@dataclasses.dataclass
class Tally:
    """Lines that were printed, by how it went."""
    passed: int = 0
    failed: int = 0
    unchecked: int = 0

    def say(self, good: bool, text: str) -> None:
        self.passed += good
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {text}", flush=True)

    def skip(self, text: str) -> None:
        self.unchecked += 1
        print(f"not checked: {text}", flush=True)


def program(variable: str, name: str) -> str:
    found = shutil.which(os.environ.get(variable, name))
    if not found:
        raise Unavailable(f"{name} is not installed (or say where it is: {variable}=/path/to/{name})")
    return found


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody has: all are held until all are known."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Cluster:
    """An API server without nodes and controllers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.kubectl_program = program("KUBECTL", "kubectl")
        self.server_program = program("KUBE_APISERVER", "kube-apiserver")
        self.etcd_program = program("ETCD", "etcd")
        self.openssl = program("OPENSSL", "openssl")
        self.running: list[subprocess.Popen[bytes]] = []
        etcd, peers, self.port = free_ports(3)
        self.etcd_address, self.peer_address = (f"http://127.0.0.1:{port}" for port in (etcd, peers))
        self.address = f"https://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(16)
        self.minor = 0

    def start(self) -> None:
        self.run_in_background(self.etcd_program, "--data-dir", str(self.folder / "etcd-data"),
                               "--listen-client-urls", self.etcd_address, "--advertise-client-urls", self.etcd_address,
                               "--listen-peer-urls", self.peer_address, "--initial-advertise-peer-urls", self.peer_address,
                               "--initial-cluster", f"default={self.peer_address}")
        version = subprocess.run([self.server_program, "--version"], capture_output=True, text=True, timeout=60, check=True)
        self.minor = int(version.stdout.split("v1.")[1].split(".")[0])
        key = self.folder / "service-accounts.key"
        subprocess.run([self.openssl, "genrsa", "-out", str(key), "2048"], capture_output=True, timeout=60, check=True)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f"{self.token},administrator,administrator,system:masters\n", encoding="utf-8")
        tokens.chmod(0o600)
        # Newer servers always give pods bound tokens, which need no controller.
        gates = ["--feature-gates=BoundServiceAccountTokenVolume=true"] if self.minor == 20 else []
        self.run_in_background(self.server_program, f"--etcd-servers={self.etcd_address}", "--bind-address=127.0.0.1",
                               f"--secure-port={self.port}", f"--cert-dir={self.folder / 'certificates'}",
                               "--endpoint-reconciler-type=none", "--authorization-mode=Node,RBAC", "--anonymous-auth=false",
                               f"--token-auth-file={tokens}", "--service-cluster-ip-range=10.0.0.0/24",
                               "--service-account-issuer=https://kubernetes.default.svc",
                               f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}", *gates)
        self.wait()
        self.write_configuration()

    def run_in_background(self, *command: str) -> None:
        log = (self.folder / f"{pathlib.Path(command[0]).name}.log").open("wb")
        with log:
            self.running.append(subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def wait(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while time.monotonic() < limit:
            for process in self.running:
                if process.poll() is not None:
                    name = pathlib.Path(str(process.args[0])).name  # type: ignore[index]
                    log = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
                    raise Unavailable(f"{name} ended with {process.returncode}: {log[-2000:]}")
            try:
                if self.get("/readyz", self.token)[0] == 200:
                    return
            except OSError:
                pass  # It does not listen yet.
            time.sleep(0.5)
        raise Unavailable(f"kube-apiserver was not ready within {START_SECONDS} s")

    def write_configuration(self) -> None:
        configuration = {"apiVersion": "v1", "kind": "Config", "current-context": "check",
                         "clusters": [{"name": "check", "cluster": {
                             "server": self.address, "certificate-authority": str(self.certificate())}}],
                         "users": [{"name": "administrator", "user": {"token": self.token}}],
                         "contexts": [{"name": "check", "context": {"cluster": "check", "user": "administrator"}}]}
        (self.folder / "config").write_text(json.dumps(configuration), encoding="utf-8")

    def certificate(self) -> pathlib.Path:
        return self.folder / "certificates" / "apiserver.crt"

    def get(self, path: str, token: str, document: Document | None = None) -> tuple[int, str]:
        """The status and the body of an answer; a document is posted."""
        context = ssl.create_default_context(cafile=str(self.certificate()))
        body = json.dumps(document).encode() if document else None
        request = urllib.request.Request(self.address + path, body,
                                         {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            with opener.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()

    def kubectl(self, *arguments: str, document: Document | None = None) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment |= {"KUBECONFIG": str(self.folder / "config"), "HOME": str(self.folder)}
        return subprocess.run([self.kubectl_program, *arguments], input=json.dumps(document) if document else "",
                              env=environment, capture_output=True, text=True, timeout=120, check=False)

    def make(self, document: Document) -> None:
        done = self.kubectl("apply", "-f", "-", document=document)
        if done.returncode != 0:
            raise Unavailable(f"{name_of(document)} cannot be made: {done.stderr.strip()}")

    def dry_run(self, document: Document) -> tuple[bool, str]:
        done = self.kubectl("apply", "--dry-run=server", "-f", "-", document=document)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("Warning: resource ")]
        return done.returncode == 0, " ".join(lines)

    def stop(self) -> None:
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def name_of(document: Document) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


def pods_of(document: Document) -> Iterator[Document]:
    """The pods that a workload would have."""
    kind, spec, metadata = document["kind"], document.get("spec", {}), document["metadata"]
    templates: list[Document] = []
    if kind in ("DaemonSet", "Deployment", "Job"):
        templates = [spec["template"]]
    elif kind == "CronJob":
        templates = [spec["jobTemplate"]["spec"]["template"]]
    elif kind == "PyTorchJob":
        templates = [replica["template"] for replica in spec["pytorchReplicaSpecs"].values()]
    for number, template in enumerate(templates):
        yield {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
               "metadata": template.get("metadata", {}) | {"name": f"{metadata['name']}-{number}",
                                                           "namespace": metadata["namespace"]}}


def built(cluster: Cluster) -> Iterator[tuple[str, Document]]:
    """Every object of every folder, as kubectl builds it, with where it is from."""
    for folder in FOLDERS:
        done = cluster.kubectl("kustomize", str(MANIFESTS / folder))
        if done.returncode != 0:
            raise Unavailable(f"kubectl kustomize {folder}: {done.stderr.strip()}")
        yield from ((folder, document) for document in yaml.safe_load_all(done.stdout) if document)
    for path in sorted((MANIFESTS / "examples").glob("*.yaml")):
        with path.open(encoding="utf-8") as file:
            yield from ((f"examples/{path.name}", document) for document in yaml.safe_load_all(file) if document)


def prepare(cluster: Cluster, objects: list[tuple[str, Document]]) -> None:
    """Makes what the others stand on. No controller makes the account that every namespace has."""
    restricted = {"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "team-a", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    for document in [restricted] + [document for _, document in objects if document["kind"] == "Namespace"]:
        cluster.make(document)
    for namespace in NAMESPACES:
        cluster.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
    for _, document in objects:
        if document["kind"] in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding"):
            cluster.make(document)


def check_object(cluster: Cluster, tally: Tally, place: str, document: Document) -> None:
    taken, answer = cluster.dry_run(document)
    if "no matches for kind" in answer:
        tally.skip(f"{place} {name_of(document)}: this server has no {document['apiVersion']} {document['kind']}")
        if document["kind"] == "CronJob":
            older = document | {"apiVersion": "batch/v1beta1"}
            taken, answer = cluster.dry_run(older)
            tally.say(taken, f"{place} {name_of(document)} as batch/v1beta1: {answer or 'taken'}")
    else:
        tally.say(taken, f"{place} {name_of(document)}: {answer or 'taken'}")
    for pod in pods_of(document):
        taken, answer = cluster.dry_run(pod)
        tally.say(taken, f"{place} {name_of(document)}, its {name_of(pod)}: {answer or 'taken'}")


def check_mistakes(cluster: Cluster, tally: Tally, objects: list[tuple[str, Document]]) -> None:
    """A server that takes everything would prove nothing: each of these it must refuse, for this reason."""
    daemon = next(document for _, document in objects if document["kind"] == "DaemonSet")
    policy = next(document for _, document in objects if document["kind"] == "NetworkPolicy")
    broken: list[tuple[str, Document, str]] = []
    for what, start, reason in (("a selector of other labels", daemon, "does not match template"),
                                ("a volume that is not there", daemon, "volumeMounts"),
                                ("an unknown field", daemon, "nknown field"),
                                ("a port above 65535", policy, "65535")):
        one = copy.deepcopy(start)
        one["metadata"]["name"] += "-broken"
        if what.startswith("a selector"):
            one["spec"]["selector"]["matchLabels"] = {"app.kubernetes.io/name": "other"}
        elif what.startswith("a volume"):
            one["spec"]["template"]["spec"]["volumes"].pop()
        elif what.startswith("an unknown"):
            one["spec"]["template"]["spec"]["hostPid"] = True
        else:
            one["spec"]["ingress"][0]["ports"][0]["port"] = 70000
        broken.append((what, one, reason))
    pod = next(pods_of(daemon))
    pod["metadata"] = {"name": "of-a-user", "namespace": "team-a"}
    pod["spec"] = pod["spec"] | {"priorityClassName": "", "serviceAccountName": "default"}
    if cluster.minor >= 23:
        broken.append(("the daemon's pod in a restricted namespace", pod, "violates PodSecurity"))
    else:
        tally.skip("the label pod-security.kubernetes.io/enforce: servers before 1.23 do not heed it")
    for what, document, reason in broken:
        taken, answer = cluster.dry_run(document)
        tally.say(not taken and reason in answer, f"refused: {what}: {answer or 'taken'}")


def check_rights(cluster: Cluster, tally: Tally) -> None:
    """Reviews say the group themselves: `kubectl auth can-i` loses that of a resource which the server does not know."""
    for account, verb, resource, namespace, expected in RIGHTS:
        name, _, part = resource.partition("/")
        kind, _, group = name.partition(".")
        asked = {"verb": verb, "group": "*" if kind == "*" else group, "resource": kind, "subresource": part,
                 "namespace": namespace}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account.split(':')[2]}", "system:authenticated"]
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": account, "groups": groups, "resourceAttributes": asked}}
        answer = json.loads(cluster.get("/apis/authorization.k8s.io/v1/subjectaccessreviews", cluster.token, review)[1])
        allowed = answer.get("status", {}).get("allowed")
        place = f"in {namespace}" if namespace else "everywhere"
        tally.say(allowed is expected, f"{account} {'may' if allowed else 'may not'} {verb} {resource} {place}")


def check_token(cluster: Cluster, tally: Tally) -> None:
    """The daemon gets this with a token of its account, as the kubelet would mount it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {"name": "zeusd"}, "spec": {}}
    path = "/api/v1/namespaces/zeus/serviceaccounts/zeusd/token"
    done = cluster.kubectl("create", "--raw", path, "-f", "-", document=review)
    if done.returncode != 0:
        tally.say(False, f"a token for zeusd: {done.stderr.strip()}")
        return
    token = json.loads(done.stdout)["status"]["token"]
    body = token.split(".")[1]
    subject = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["sub"]
    tally.say(subject == DAEMON, f"a token for {subject}")
    # A server without resource.k8s.io answers 404: asking was allowed, there is nothing.
    groups = json.loads(cluster.get("/apis", cluster.token)[1])["groups"]
    versions = [one["version"] for group in groups if group["name"] == "resource.k8s.io" for one in group["versions"]]
    version = versions[0] if versions else "v1"
    expected = {f"/apis/resource.k8s.io/{version}/resourceslices": 200 if versions else 404,
                "/api/v1/secrets": 403, "/api/v1/namespaces/zeus/configmaps": 403, "/api/v1/pods": 403,
                "/api/v1/nodes": 403}
    for path, status in expected.items():
        got = cluster.get(path, token)[0]
        tally.say(got == status, f"GET {path} with it: {got}")
    tally.say(cluster.get("/api/v1/nodes", "wrong")[0] == 401, "GET /api/v1/nodes with a wrong token: 401")


def check(cluster: Cluster) -> Tally:
    tally = Tally()
    print(f"server {json.loads(cluster.get('/version', cluster.token)[1])['gitVersion']}, "
          f"{cluster.kubectl('version', '--client').stdout.splitlines()[0]}", flush=True)
    objects = list(built(cluster))
    prepare(cluster, objects)
    for place, document in objects:
        check_object(cluster, tally, place, document)
    check_mistakes(cluster, tally, objects)
    check_rights(cluster, tally)
    check_token(cluster, tally)
    print(f"{tally.passed} as they should be, {tally.failed} not, {tally.unchecked} not checked")
    return tally


def main() -> int:
    # The servers end with this script, also when it is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with tempfile.TemporaryDirectory(prefix="zeus-kube-") as folder:
            cluster = Cluster(pathlib.Path(folder))
            try:
                cluster.start()
                return 1 if check(cluster).failed else 0
            finally:
                cluster.stop()
    except Unavailable as reason:
        print(f"kube_apiserver_check: {reason}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
