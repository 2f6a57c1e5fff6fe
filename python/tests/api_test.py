"""Scripts for the reference implementation find every public name, parameter and default here, and every name has words."""

import importlib
import inspect
import os
import pkgutil
import re
import unittest

import zeus
from zeus.monitor import Measurement, ZeusMonitor

NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference_names.txt")

# The reference's names that are not here, and the reasons. Keys are modules, or modules with a name.
VENDORS = "one GPU class serves all vendors"
ONE_CPU_CLASS = "one CPU class serves all sources of energy"
INTERNALS = "an internal of its helper processes: here one native thread records"
PYDANTIC = "a record of its server's requests, made by pydantic"
ABSENT = {
    "zeus.device.gpu.amd": VENDORS,
    "zeus.device.gpu.nvidia": VENDORS,
    "zeus.device.gpu NVIDIAGPUs": VENDORS,
    "zeus.device.gpu AMDGPUs": VENDORS,
    "zeus.device.cpu.emi": "energy counters of Windows",
    "zeus.device.cpu.rapl": ONE_CPU_CLASS,
    "zeus.device.cpu EMICPUs": "energy counters of Windows",
    "zeus.device.cpu emi_is_available": "energy counters of Windows",
    "zeus.device.cpu RAPLCPUs": ONE_CPU_CLASS,
    "zeus.device.soc.apple": "Zeus runs on Linux",
    "zeus.device.soc AppleSilicon": "Zeus runs on Linux",
    "zeus.device.soc ZeusAppleInitError": "Zeus runs on Linux",
    "zeus.device.soc apple_silicon_is_available": "Zeus runs on Linux",
    "zeus.device.soc.jetson": "one class serves all boards",
    "zeus.device.soc Jetson": "one class serves all boards",
    "zeus.device.soc ZeusJetsonInitError": "ZeusSoCInitError is raised for all boards",
    "zeus.device.common DeprecatedAliasABCMeta": "an internal of its deprecated names",
    "zeus.device.common deprecated_alias": "an internal of its deprecated names",
    "zeus.metric MonitoringProcessState": INTERNALS,
    "zeus.metric energy_monitoring_loop": INTERNALS,
    "zeus.metric power_monitoring_loop": INTERNALS,
    "zeus.monitor.carbon Op": INTERNALS,
    "zeus.monitor.price Op": INTERNALS,
    "zeus.monitor.energy MeasurementState": "ZeusMonitor.measurement_states has the windows so far",
    "zeus.monitor.power PowerSample": INTERNALS,
    "zeus.monitor.power infer_counter_update_period": "the monitor learns the period of each sensor by itself",
    "zeus.monitor.temperature TemperatureSample": INTERNALS,
    "zeus.monitor.price OpenEIClient.search_json": "an internal of its search for a tariff",
    "zeus.optimizer.batch_size.migrations.env": "an internal of its server",
    "zeus.optimizer.pipeline_frequency.common": PYDANTIC,
    "zeus.optimizer.pipeline_frequency.frequency_controller": INTERNALS,
    "zeus.utils.async_utils": "an internal of its servers",
    "zeus.utils.multiprocessing": INTERNALS,
    **{f"zeus.optimizer.batch_size.common {name}": PYDANTIC for name in
       ("CreatedJob", "GpuConfig", "JobParams", "JobSpecFromClient", "ReportResponse", "TrainingResult", "TrialId")},
    **{f"zeus.optimizer.power_limit {name}": "`state` of the optimiser tells where it is" for name in
       ("Done", "Profiling", "Ready", "Warmup")},
    "zeus.monitor.__main__": "a command line, not for import",
}  # fmt: skip

# Parameters and defaults that differ, and why.
DIFFERENT = {
    "zeus.device.cpu.common CPU.__init__": "objects come from get_cpus()",
    "zeus.device.cpu.common CPUs.__init__": "objects come from get_cpus()",
    "zeus.device.gpu.common GPU.__init__": "objects come from get_gpus()",
    "zeus.device.gpu.common GPUs.__init__": "objects come from get_gpus()",
    "zeus.monitor.energy ZeusMonitor.__init__": "sync_execution_with: what the program has imported, not always torch",
    "zeus.monitor.carbon CarbonEmissionMonitor.__init__": "sync_execution_with, as for ZeusMonitor",
    "zeus.monitor.price EnergyCostMonitor.__init__": "sync_execution_with, as for ZeusMonitor",
}


def facts():
    """Yields (module, name, parameters or None)."""
    with open(NAMES, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("#"):
                module, name, *rest = line.strip().split(" ", 2)
                yield module, name, rest[0] if rest else None


def is_absent(module, name):
    return any(key in ABSENT for key in (module, f"{module} {name}", f"{module} {name.split('.')[0]}"))


def find(module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def parameters(text):
    """The names and defaults of "(self, a, b=1, *, c=None)", as text."""
    namespace = {}
    text = text.replace("PowerDomain.DEVICE_INSTANT", "'device_instant'")
    exec(f"def function{text}: pass", namespace)  # A fact from a file of this test.
    return [(one.name, one.default, one.kind) for one in inspect.signature(namespace["function"]).parameters.values()
            if one.name not in ("self", "cls")]  # fmt: skip


def same_default(ours, theirs):
    ours = getattr(ours, "value", ours)  # An enumeration counts as its value.
    return ours == theirs or (isinstance(theirs, list) and list(ours) == theirs)


class ReferenceNamesTest(unittest.TestCase):
    maxDiff = None

    def test_every_name_is_there(self):
        missing = []
        for module, name, _ in facts():
            if is_absent(module, name):
                continue
            try:
                find(module, name)
            except (ImportError, AttributeError) as error:
                if isinstance(error, ImportError) or not self.is_field(module, name):
                    missing.append(f"{module} {name}: {error}")
        self.assertEqual(missing, [])

    def is_field(self, module, name):
        """Fields of dataclasses and attributes that __init__ sets are no attributes of the class."""
        owner, _, field = name.rpartition(".")
        if not owner:
            return False
        try:
            cls = find(module, owner)
        except AttributeError:
            return False
        if not inspect.isclass(cls):
            return False
        annotations = {key for base in cls.__mro__ for key in getattr(base, "__annotations__", ())}
        try:
            return field in annotations or f"self.{field} =" in inspect.getsource(cls)
        except (OSError, TypeError):
            return field in annotations

    def test_parameters_have_the_same_names_order_and_defaults(self):
        wrong = []
        for module, name, text in facts():
            if text is None or is_absent(module, name) or f"{module} {name}" in DIFFERENT:
                continue
            try:
                found = find(module, name)
            except (ImportError, AttributeError):
                continue  # The other test names it.
            if name.endswith("__init__") and issubclass(find(module, name.split(".")[0]), BaseException):
                continue  # An exception takes its message.
            ours = [one for one in inspect.signature(found).parameters.values() if one.name not in ("self", "cls")]
            theirs = parameters(text)
            for index, (parameter, default, kind) in enumerate(theirs):
                if kind is inspect.Parameter.VAR_KEYWORD:
                    continue
                mine = ours[index] if index < len(ours) else None
                # A default where the reference has none serves its callers as well.
                optional = default is inspect.Parameter.empty or (
                    mine is not None and same_default(mine.default, default))
                if mine is None or mine.name != parameter or not optional:
                    wrong.append(f"{module} {name}{text}: here ({', '.join(map(str, ours))})")
                    break
            else:
                for extra in ours[len(theirs):]:
                    if extra.default is inspect.Parameter.empty and extra.kind not in (
                            inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
                        wrong.append(f"{module} {name}: {extra.name} has no default")
        self.assertEqual(wrong, [])

    def test_the_lists_of_exceptions_name_nothing_that_is_gone(self):
        known = {f"{module} {name}" for module, name, _ in facts()} | {module for module, _, _ in facts()}
        self.assertEqual({key for key in ABSENT if key not in known and not key.endswith(".migrations.env")}, set())
        self.assertEqual(set(DIFFERENT) - known, set())


def public_modules():
    yield zeus
    for found in pkgutil.walk_packages(zeus.__path__, "zeus."):
        if not re.search(r"\._|__main__", found.name):
            yield importlib.import_module(found.name)


def members(cls):
    """Public members of a class that are written here, its own and inherited ones."""
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == "zeus":
            for name, member in vars(base).items():
                if not name.startswith("_"):
                    yield name, member


class WordsTest(unittest.TestCase):
    maxDiff = None

    def test_every_public_name_has_words_and_a_signature(self):
        wordless, unsigned = set(), set()
        for module in public_modules():
            for name in getattr(module, "__all__", ()):
                thing = getattr(module, name)
                where = f"{module.__name__}.{name}"
                if inspect.isclass(thing):
                    for member, value in members(thing):
                        self.check(f"{where}.{member}", getattr(thing, member), value, wordless, unsigned)
                if inspect.isclass(thing) or inspect.isroutine(thing):
                    self.check(where, thing, thing, wordless, unsigned)
        self.assertEqual(sorted(wordless), [])
        self.assertEqual(sorted(unsigned), [])

    def test_signatures_of_native_methods_are_those_of_the_stubs(self):
        for method, expected in (
            (Measurement.refined, "(self, timeout=2.0)"),
            (Measurement(1.0, {}).refined, "(timeout=2.0)"),
            (ZeusMonitor.end_window, "(self, /, key, sync_execution=True, cancel=False)"),
        ):
            self.assertEqual(str(inspect.signature(method)), expected)
        self.assertEqual(list(inspect.signature(Measurement).parameters)[:2], ["time", "gpu_energy"])

    def check(self, where, thing, value, wordless, unsigned):
        described = callable(thing) or isinstance(value, property)
        if described and not (inspect.getdoc(value if isinstance(value, property) else thing) or "").strip():
            wordless.add(where)
        # Programs do not make exceptions, nor objects of native classes without __init__.
        made = not inspect.isclass(thing) or not (
            issubclass(thing, BaseException) or type(thing.__init__).__name__ == "wrapper_descriptor")
        if callable(thing) and made:
            try:
                inspect.signature(thing)
            except (TypeError, ValueError):
                unsigned.add(where)


if __name__ == "__main__":
    unittest.main()
