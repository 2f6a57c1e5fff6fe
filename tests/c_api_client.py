"""libzeus.so from another language: Python with ctypes only. Measures a window from its start to a
line on standard input, and prints its time and energies."""

import ctypes
import os
import sys

zeus = ctypes.CDLL(os.environ["ZEUS_LIBRARY"])
zeus.zeus_last_error.restype = ctypes.c_char_p


class Total(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("id", ctypes.c_uint64),
        ("window", ctypes.c_char_p),
        ("started_unix_seconds", ctypes.c_double),
        ("time_seconds", ctypes.c_double),
        ("refined", ctypes.c_int32),
        ("device_count", ctypes.c_size_t),
        ("energy_joules", ctypes.c_double),
        ("sigma_joules", ctypes.c_double),
        ("attributed_joules", ctypes.c_double),
        ("contained", ctypes.c_size_t),
        ("missing", ctypes.c_size_t),
    ]


def call(function, *arguments):
    if getattr(zeus, function)(*arguments) != 0:
        sys.exit(f"{function}: {zeus.zeus_last_error().decode()}")


monitor, measurement, window = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
total = Total(struct_size=ctypes.sizeof(Total))
call("zeus_monitor_open", None, ctypes.byref(monitor))
call("zeus_window_begin", monitor, b"python", None, ctypes.byref(window))
print("begun", flush=True)
sys.stdin.readline()
call("zeus_window_end", monitor, b"python", ctypes.byref(measurement))
zeus.zeus_measurement_free(measurement)
call("zeus_window_refine", monitor, window, ctypes.c_double(10), ctypes.byref(measurement))
call("zeus_measurement_total_get", measurement, ctypes.byref(total))
print(total.window.decode(), total.time_seconds, total.energy_joules, total.attributed_joules)
zeus.zeus_measurement_free(measurement)
call("zeus_monitor_close", monitor)
