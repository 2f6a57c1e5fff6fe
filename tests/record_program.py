"""A client of NVML for the tests of `zeus record`: reads GPUs in several ways, and prints what it was told as JSON."""

import ctypes
import json
import os
import sys
import threading
import time

GPUS = 2
POWER_INSTANT, ENERGY = 186, 191


class Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("type", ctypes.c_int), ("code", ctypes.c_int),
                ("value", ctypes.c_ulonglong)]  # fmt: skip


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlErrorString.restype = ctypes.c_char_p
        if (code := self.library.nvmlInit_v2()) != 0:
            sys.exit(f"nvmlInit: {self.library.nvmlErrorString(code).decode()}")

    def gpu(self, index):
        handle = ctypes.c_void_p()
        assert self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
        return handle

    def number(self, function, gpu, kind=ctypes.c_uint):
        value = kind()
        code = getattr(self.library, function)(gpu, ctypes.byref(value))
        return [code, value.value]

    def energy(self, gpu):
        return self.number("nvmlDeviceGetTotalEnergyConsumption", gpu, ctypes.c_ulonglong)

    def text(self, function, gpu):
        buffer = ctypes.create_string_buffer(96)
        code = getattr(self.library, function)(gpu, buffer, len(buffer))
        return [code, buffer.value.decode()]

    def fields(self, gpu, *ids):
        fields = (Field * len(ids))(*[Field(id=number) for number in ids])
        code = self.library.nvmlDeviceGetFieldValues(gpu, len(ids), fields)
        return [code, [[field.code, field.value] for field in fields]]


def read_all(nvml, gpu):
    count = ctypes.c_uint(0)
    sized = nvml.library.nvmlDeviceGetSupportedMemoryClocks(gpu, ctypes.byref(count), None)
    clocks = (ctypes.c_uint * max(count.value, 1))()
    listed = nvml.library.nvmlDeviceGetSupportedMemoryClocks(gpu, ctypes.byref(count), clocks)
    return {
        "name": nvml.text("nvmlDeviceGetName", gpu), "uuid": nvml.text("nvmlDeviceGetUUID", gpu),
        "serial": nvml.text("nvmlDeviceGetSerial", gpu), "energy": nvml.energy(gpu),
        "power": nvml.number("nvmlDeviceGetPowerUsage", gpu),
        "limit": nvml.number("nvmlDeviceGetPowerManagementLimit", gpu),
        "set": nvml.library.nvmlDeviceSetPowerManagementLimit(gpu, 200000),
        "fields": nvml.fields(gpu, ENERGY, POWER_INSTANT), "clocks": [sized, listed, list(clocks)],
        "fan": nvml.number("nvmlDeviceGetFanSpeed", gpu), "error": nvml.library.nvmlErrorString(4).decode(),
    }  # fmt: skip


def watch(nvml, gpu, readings, stop):
    while not stop.is_set():
        readings.append(nvml.energy(gpu))
        time.sleep(0.003)


def measure(seconds):
    """The energy of a window by the difference of the counters, while another thread reads them all the time."""
    nvml = Nvml()
    gpus = [nvml.gpu(index) for index in range(GPUS)]
    stop, readings = threading.Event(), []
    thread = threading.Thread(target=watch, args=(nvml, gpus[0], readings, stop))
    first = [nvml.energy(gpu) for gpu in gpus]
    facts = [read_all(nvml, gpu) for gpu in gpus]
    thread.start()
    series = []
    deadline = time.monotonic() + seconds
    for _ in range(20):
        series.append([nvml.energy(gpu) for gpu in gpus])
        time.sleep(max(0, (deadline - time.monotonic()) / 20))
    stop.set()
    thread.join()
    last = [nvml.energy(gpu) for gpu in gpus]
    assert nvml.library.nvmlShutdown() == 0
    return {"energies": [end[1] - begin[1] for begin, end in zip(first, last)], "codes": [e[0] for e in last],
            "facts": facts, "series": series}  # fmt: skip


def fork_and_measure():
    """The parent and its forked child read; the child's driver must be initialised anew."""
    nvml = Nvml()
    gpu = nvml.gpu(0)
    before = nvml.energy(gpu)
    reader, writer = os.pipe()
    if os.fork() == 0:
        uninitialised = nvml.energy(gpu)[0]
        child = Nvml()
        os.write(writer, json.dumps([uninitialised, child.energy(child.gpu(1))]).encode())
        os._exit(0)
    os.wait()
    return {"parent": [before, nvml.energy(gpu)], "child": json.loads(os.read(reader, 1000))}


def ask_something_else():
    """Questions that measure() never asks."""
    nvml = Nvml()
    gpu = nvml.gpu(1)
    handle = ctypes.c_void_p()
    return {"temperature": nvml.library.nvmlDeviceGetTemperature(gpu, 0, ctypes.byref(ctypes.c_uint())),
            "count": [nvml.library.nvmlDeviceGetHandleByIndex_v2(7, ctypes.byref(handle))],
            "field": nvml.fields(gpu, POWER_INSTANT, 82)}  # fmt: skip


def run_for_ever():
    nvml = Nvml()
    gpu = nvml.gpu(0)
    for calls in range(20_000_000):
        nvml.energy(gpu)
        if calls == 5000:
            print("5000 calls", flush=True)


if __name__ == "__main__":
    actions = {"measure": lambda: measure(1.0), "fork": fork_and_measure, "else": ask_something_else, "ever": run_for_ever}
    print(json.dumps(actions[sys.argv[1]]()), flush=True)
