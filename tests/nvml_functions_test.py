"""Programs that link any function of NVML run on a simulated node, and none is killed by the loader."""

import json
import os
import subprocess
import unittest

from sim_testing import SimTestCase

EAGER = os.environ["NVML_EAGER_PROGRAM"]  # Linked with -z now: every name is needed at the start.
LAZY = os.environ["NVML_LAZY_PROGRAM"]  # Each name is looked up by its first call.
FUNCTIONS = os.environ["NVML_FUNCTIONS"]

SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, TIMEOUT = 0, 2, 3, 10
ERROR_CODES = [*range(31), 999]
SINGLE_BIT, DOUBLE_BIT, XID = 1, 2, 8

# Functions that give one number of a GPU, and the numbers of an A100 and a V100.
PLAIN_VALUES = {
    "nvmlDeviceGetComputeMode": (0, 0), "nvmlDeviceGetDisplayMode": (0, 0), "nvmlDeviceGetDisplayActive": (0, 0),
    "nvmlDeviceGetNumFans": (0, 0), "nvmlDeviceGetMultiGpuBoard": (0, 0), "nvmlDeviceGetMemoryBusWidth": (5120, 4096),
    "nvmlDeviceGetNumGpuCores": (6912, 5120), "nvmlDeviceGetAccountingMode": (0, 0),
    "nvmlDeviceGetPcieReplayCounter": (0, 0), "nvmlDeviceGetPowerSource": (0, 0), "nvmlDeviceGetBusType": (2, 2),
    "nvmlDeviceGetPcieSpeed": (16000, 8000), "nvmlDeviceGetPcieLinkMaxSpeed": (4, 3),
}  # fmt: skip


class NvmlFunctionsTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.sim("start", "--gpus", "A100,V100")
        self.client_environment = self.evaluated_environment()
        with open(FUNCTIONS, encoding="utf-8") as functions:
            self.functions = {line.split()[0] for line in functions if not line.startswith("#")}

    def run_program(self, *command):
        return subprocess.run(command, env=self.client_environment, capture_output=True, text=True, timeout=120,
                              check=False)

    def test_a_program_that_needs_every_name_at_its_start_runs(self):
        done = self.run_program(EAGER)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{len(self.functions)} functions\n")

    def test_a_program_that_looks_names_up_late_may_call_every_function(self):
        done = self.run_program(LAZY, "call")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answers = dict(line.split() for line in done.stdout.splitlines()[:-1])
        self.assertEqual(set(answers), self.functions - {"nvmlShutdown"})
        for name, code in answers.items():
            self.assertIn(int(code), ERROR_CODES, name)
        self.assertEqual(int(answers["nvmlDeviceGetVgpuMetadata"]), NOT_SUPPORTED)
        self.assertEqual(int(answers["nvmlDeviceGetComputeMode"]), INVALID_ARGUMENT)  # There is no place for it.

    def child(self, body):
        """Runs lines of Python with `nvml` (the library, initialised) and `gpus` (two handles); gives its JSON."""
        script = "\n".join([
            "import ctypes, json",
            "nvml = ctypes.CDLL('libnvidia-ml.so.1')",
            "assert nvml.nvmlInit_v2() == 0",
            "gpus = [ctypes.c_void_p() for _ in range(2)]",
            "for i, gpu in enumerate(gpus): assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(gpu)) == 0",
            "nvml.nvmlErrorString.restype = ctypes.c_char_p",
            body,
        ])  # fmt: skip
        done = self.run_program(os.environ.get("ZEUS_PYTHON", "python3"), "-B", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_cheap_values_are_true(self):
        names = json.dumps(list(PLAIN_VALUES))
        values = self.child(f"""
answers = {{}}
for name in {names}:
    values = []
    for gpu in gpus:
        value = ctypes.c_uint(77)
        code = getattr(nvml, name)(gpu, ctypes.byref(value))
        values.append(value.value if code == 0 else f"error {{code}}")
    answers[name] = values
print(json.dumps(answers))""")
        self.assertEqual({name: tuple(pair) for name, pair in values.items()}, PLAIN_VALUES)

    def test_every_error_code_has_its_own_words_and_the_version_has_numbers(self):
        answer = self.child(f"""
version = ctypes.create_string_buffer(80)
assert nvml.nvmlSystemGetDriverVersion(version, 80) == 0
texts = [nvml.nvmlErrorString(code).decode() for code in {ERROR_CODES}]
print(json.dumps([texts, nvml.nvmlErrorString(12345).decode(), version.value.decode()]))""")
        texts, unknown, version = answer
        self.assertEqual(len(set(texts)), len(ERROR_CODES))
        self.assertNotIn(unknown, texts)
        self.assertTrue(all(part.isdigit() for part in version.split(".")), version)

    def test_an_applications_clock_holds_until_it_is_reset(self):
        answer = self.child("""
def clock(function):
    value = ctypes.c_uint()
    assert getattr(nvml, function)(gpus[0], 0, ctypes.byref(value)) == 0
    return value.value
memory = ctypes.c_uint()
assert nvml.nvmlDeviceGetMaxClockInfo(gpus[0], 2, ctypes.byref(memory)) == 0
seen = [clock("nvmlDeviceGetApplicationsClock"), clock("nvmlDeviceGetDefaultApplicationsClock")]
codes = [nvml.nvmlDeviceSetApplicationsClocks(gpus[0], memory.value, 1110)]
seen.append(clock("nvmlDeviceGetApplicationsClock"))
codes.append(nvml.nvmlDeviceSetApplicationsClocks(gpus[0], memory.value, 1111))
codes.append(nvml.nvmlDeviceSetApplicationsClocks(gpus[0], 1, 1110))
codes.append(nvml.nvmlDeviceResetApplicationsClocks(gpus[0]))
seen.append(clock("nvmlDeviceGetApplicationsClock"))
print(json.dumps([seen, codes]))""")
        if os.geteuid() != 0:
            self.skipTest("only root may set clocks, on a simulated node as on a real one")
        self.assertEqual(answer, [[1410, 1410, 1110, 1410], [SUCCESS, INVALID_ARGUMENT, INVALID_ARGUMENT, SUCCESS]])

    def test_a_program_that_waits_for_events_learns_that_a_gpu_was_lost(self):
        zeus = os.environ["ZEUS_BINARY"]
        answer = self.child(f"""
import subprocess
class EventData(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("type", ctypes.c_ulonglong), ("data", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]
events, event, codes = ctypes.c_void_p(), EventData(), []
codes.append(nvml.nvmlEventSetCreate(ctypes.byref(events)))
for gpu in gpus:
    codes.append(nvml.nvmlDeviceRegisterEvents(gpu, ctypes.c_ulonglong({SINGLE_BIT | DOUBLE_BIT | XID}), events))
codes.append(nvml.nvmlDeviceRegisterEvents(gpus[0], ctypes.c_ulonglong(1 << 60), events))
codes.append(nvml.nvmlEventSetWait_v2(events, ctypes.byref(event), 10))
subprocess.run([{zeus!r}, "sim", "fault", "--gpu", "1", "--kind", "lost"], check=True, stdout=subprocess.DEVNULL)
codes.append(nvml.nvmlEventSetWait_v2(events, ctypes.byref(event), 60000))
lost = [event.device == gpus[1].value, event.type, event.data]
codes.append(nvml.nvmlEventSetFree(events))
codes.append(nvml.nvmlEventSetFree(events))
print(json.dumps([codes, lost]))""")
        self.assertEqual(answer, [
            [SUCCESS, SUCCESS, SUCCESS, NOT_SUPPORTED, TIMEOUT, SUCCESS, SUCCESS, INVALID_ARGUMENT],
            [True, XID, 79],
        ])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
