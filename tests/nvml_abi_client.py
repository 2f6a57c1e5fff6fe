"""The client of nvml_abi_client.c again, in Python with ctypes only."""

import ctypes
import os
import sys

nvml = ctypes.CDLL("libnvidia-ml.so.1")


class Failure(Exception):
    pass


class FieldValue(ctypes.Structure):
    _fields_ = [
        ("field_id", ctypes.c_uint),
        ("scope_id", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("value_type", ctypes.c_int),
        ("result", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


def call(function, *arguments):
    result = getattr(nvml, function)(*arguments)
    if result != 0:
        raise Failure(result)


def number(function, device, kind=ctypes.c_uint):
    value = kind()
    call(function, device, ctypes.byref(value))
    return value.value


def text(function, device):
    buffer = ctypes.create_string_buffer(96)
    call(function, device, buffer, len(buffer))
    return buffer.value.decode()


def handle(index):
    device = ctypes.c_void_p()
    call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
    return device


def limits(device):
    low, high = ctypes.c_uint(), ctypes.c_uint()
    call("nvmlDeviceGetPowerManagementLimitConstraints", device, ctypes.byref(low), ctypes.byref(high))
    requested = number("nvmlDeviceGetPowerManagementLimit", device)
    enforced = number("nvmlDeviceGetEnforcedPowerLimit", device)
    return f"{requested} {enforced} {low.value} {high.value}"


def fields(device):
    values = (FieldValue * 4)(*[FieldValue(field_id=i) for i in (83, 186, 192, 9999)])
    call("nvmlDeviceGetFieldValues", device, 4, values)
    energy, power, limit, unknown = values
    return (
        f"{energy.result} {energy.value} {power.result} {power.value & 0xFFFFFFFF} "
        f"{limit.result} {limit.value & 0xFFFFFFFF} {unknown.result}"
    )


def fork(device):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        power = ctypes.c_uint()
        before = nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(power))
        after = nvml.nvmlInit_v2()
        if after == 0:
            after = nvml.nvmlDeviceGetPowerUsage(handle(0), ctypes.byref(power))
        print(f"{before} {after}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)


def change(function, device, *values):
    call(function, device, *map(ctypes.c_uint, values))
    return "ok"


def answer(command, index=0, argument=0):
    if command == "count":
        count = ctypes.c_uint()
        call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value
    device = handle(index)
    answers = {
        "name": lambda: text("nvmlDeviceGetName", device),
        "uuid": lambda: text("nvmlDeviceGetUUID", device),
        "power": lambda: number("nvmlDeviceGetPowerUsage", device),
        "energy": lambda: number(
            "nvmlDeviceGetTotalEnergyConsumption", device, ctypes.c_ulonglong
        ),
        "limits": lambda: limits(device),
        "fields": lambda: fields(device),
        "fork": lambda: fork(device),
        "set": lambda: change("nvmlDeviceSetPowerManagementLimit", device, argument),
        "lock": lambda: change("nvmlDeviceSetGpuLockedClocks", device, argument, argument),
        "lock-memory": lambda: change(
            "nvmlDeviceSetMemoryLockedClocks", device, argument, argument
        ),
    }
    return answers[command]()


def main():
    try:
        call("nvmlInit_v2")
    except Failure as failure:
        print(f"error {failure}")
        return 1
    for line in sys.stdin:
        command, *numbers = line.split()
        try:
            reply = answer(command, *map(int, numbers))
        except Failure as failure:
            reply = f"error {failure}"
        if reply is not None:
            print(reply, flush=True)
    return nvml.nvmlShutdown()


if __name__ == "__main__":
    sys.exit(main())
