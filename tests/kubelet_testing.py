"""A kubelet for tests: its pod-resources API by the real gRPC and protobuf libraries, its folders of logs, and control
groups of pods in which processes can be put."""

import concurrent.futures
import os
import shutil
import threading
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# k8s.io/kubelet/pkg/apis/podresources/v1: name, number, type; a type with a capital letter is a message.
MESSAGES = {
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [("pod_resources", 1, "PodResources*")],
    "PodResources": [("name", 1, "string"), ("namespace", 2, "string"), ("containers", 3, "ContainerResources*")],
    "ContainerResources": [("name", 1, "string"), ("devices", 2, "ContainerDevices*"), ("cpu_ids", 3, "int64*"),
                           ("memory", 4, "ContainerMemory*"), ("dynamic_resources", 5, "DynamicResource*")],
    "ContainerDevices": [("resource_name", 1, "string"), ("device_ids", 2, "string*"), ("topology", 3, "TopologyInfo")],
    "ContainerMemory": [("memory_type", 1, "string"), ("size", 2, "uint64")],
    "TopologyInfo": [("nodes", 1, "NUMANode*")],
    "NUMANode": [("ID", 1, "int64")],
    "DynamicResource": [("claim_name", 2, "string"), ("claim_namespace", 3, "string"),
                        ("claim_resources", 4, "ClaimResource*")],
    "ClaimResource": [("cdi_devices", 1, "CDIDevice*"), ("driver_name", 2, "string"), ("pool_name", 3, "string"),
                      ("device_name", 4, "string")],
    "CDIDevice": [("name", 1, "string")],
}


# Pods of one namespace may limit their own GPUs.
RULES = """
[defaults]
scopes = ["gpu-read"]

[[rule]]
name = "pods of team a"
match = { cgroup = "*kubepods*", namespace = "team-a" }
scopes = ["gpu-read", "gpu-control"]
devices = "job"
gpu_power_limit = { min_watts = 150 }
"""


def message_class(name, pool=[]):  # The classes are made once.
    if not pool:
        field_type = descriptor_pb2.FieldDescriptorProto
        file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
        for message, fields in MESSAGES.items():
            entry = file.message_type.add(name=message)
            for field, number, kind in fields:
                label = field_type.LABEL_REPEATED if kind.endswith("*") else field_type.LABEL_OPTIONAL
                kind = kind.rstrip("*")
                one = entry.field.add(name=field, number=number, label=label)
                if kind[0].isupper():
                    one.type, one.type_name = field_type.TYPE_MESSAGE, f".v1.{kind}"
                else:
                    one.type = getattr(field_type, f"TYPE_{kind.upper()}")
        pool.append(descriptor_pool.DescriptorPool())
        pool[0].Add(file)
    return message_factory.MessageFactory(pool[0]).GetPrototype(pool[0].FindMessageTypeByName(f"v1.{name}"))


def pod_resources(pods):
    """The encoded answer for [(namespace, pod, {container: {resource: [ids]}})]; a resource that is a tuple is a claim
    (driver, pool) with the names of its devices."""
    answer = message_class("ListPodResourcesResponse")()
    for namespace, name, containers in pods:
        pod = answer.pod_resources.add(name=name, namespace=namespace)
        for container, resources in containers.items():
            entry = pod.containers.add(name=container, cpu_ids=[1, 2])
            entry.memory.add(memory_type="memory", size=1 << 30)
            for resource, ids in resources.items():
                if isinstance(resource, tuple):
                    claim = entry.dynamic_resources.add(claim_name="claim", claim_namespace=namespace)
                    for one in ids:
                        given = claim.claim_resources.add(driver_name=resource[0], pool_name=resource[1], device_name=one)
                        given.cdi_devices.add(name=f"k8s.{resource[0]}/device={one}")
                else:
                    devices = entry.devices.add(resource_name=resource, device_ids=ids)
                    devices.topology.nodes.add(ID=0)
    return answer.SerializeToString()


class Kubelet:
    """Serves `pods` (see pod_resources) on a Unix socket. `answer`, if set, gives the bytes or raises instead."""

    def __init__(self, path):
        self.pods = []
        self.answer = None
        self.calls = 0
        self.called = threading.Condition()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2),
                                  options=[("grpc.max_send_message_length", 1 << 30)])
        handler = grpc.unary_unary_rpc_method_handler(self.list)  # Without serializers: bytes.
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),))
        if self.server.add_insecure_port(f"unix:{path}") == 0:
            raise AssertionError(f"gRPC cannot listen at {path}")
        self.server.start()

    def list(self, request, context):
        message_class("ListPodResourcesRequest")().ParseFromString(request)
        with self.called:
            self.calls += 1
            self.called.notify_all()
        return self.answer(context) if self.answer else pod_resources(self.pods)

    def wait_for_calls(self, count):
        """Until it was asked `count` more times."""
        with self.called:
            until = self.calls + count
            if not self.called.wait_for(lambda: self.calls >= until, timeout=60):
                raise AssertionError("nobody asks the kubelet")

    def stop(self):
        self.server.stop(grace=0).wait()


def group_root():
    """A folder of control groups in which processes can be put; None where there is none."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd"):
        if os.path.exists(os.path.join(root, "cgroup.procs")) and os.access(root, os.W_OK):
            probe = os.path.join(root, f"zeus-probe-{os.getpid()}")
            try:
                os.mkdir(probe)
                os.rmdir(probe)
                return root
            except OSError:
                continue
    return None


class RunningPod:
    """A pod that runs: its folder of logs and its control group."""

    def __init__(self, test, logs, namespace, name):
        self.uid = str(uuid.uuid4())
        self.log = os.path.join(logs, f"{namespace}_{name}_{self.uid}")
        os.mkdir(self.log)
        self.path = f"/kubepods/pod{self.uid}"
        self.group = group_root() + self.path
        self.container_group = os.path.join(self.group, uuid.uuid4().hex * 2)
        os.makedirs(self.container_group)
        test.addCleanup(self.end)

    def add(self, process):
        with open(os.path.join(self.container_group, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(process.pid))

    def end(self):
        """To be called when its processes have ended."""
        for group in (self.container_group, self.group):
            if os.path.isdir(group):
                os.rmdir(group)
        try:
            os.rmdir(os.path.dirname(self.group))
        except OSError:
            pass  # Pods of other tests run.
        shutil.rmtree(self.log, ignore_errors=True)
