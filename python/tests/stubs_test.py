"""The stubs say what the extension module has, and the package explains what it offers."""

import ast
import importlib
import inspect
import pathlib
import pkgutil
import types
import unittest

import zeus
from zeus import _core

STUBS = pathlib.Path(__file__).resolve().parents[1] / "zeus" / "_core"
# Members that every class has, or that pybind11 gives to all of them.
ALWAYS = set(dir(object)) | {"__module__", "__dict__", "__weakref__", "__members__", "__entries",
                             "__qualname__", "__static_attributes__", "__firstlineno__"}


def is_public(name: str) -> bool:
    return not name.startswith("_")


def submodules() -> list[types.ModuleType]:
    return [part for name, part in sorted(vars(_core).items()) if inspect.ismodule(part)]


def names_in(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Public names that these lines of a stub define. Aliases of types are there for it alone."""
    found: dict[str, ast.stmt] = {}
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            found[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
    return {name: statement for name, statement in found.items() if is_public(name)}


def package_modules() -> list[types.ModuleType]:
    """Every module of the package that can be imported here, written in Python."""
    found = [zeus]
    for information in pkgutil.walk_packages(zeus.__path__, "zeus."):
        if "_core" not in information.name and not information.name.endswith("__main__"):
            try:
                found.append(importlib.import_module(information.name))
            except ImportError as missing:
                # Integrations need the package that they are for.
                if (missing.name or "zeus").split(".")[0] == "zeus":
                    raise
    return found


class StubsTest(unittest.TestCase):
    def test_every_name_of_a_module_is_in_its_stub_and_the_other_way_round(self) -> None:
        for module in submodules():
            name = module.__name__.rpartition(".")[2]
            with self.subTest(module=name):
                stub = names_in(ast.parse((STUBS / f"{name}.pyi").read_text()).body)
                real = {key for key in vars(module) if is_public(key)}
                self.assertEqual(real, set(stub))

    def test_every_member_of_a_class_is_in_its_stub_and_the_other_way_round(self) -> None:
        for module in submodules():
            name = module.__name__.rpartition(".")[2]
            stub = names_in(ast.parse((STUBS / f"{name}.pyi").read_text()).body)
            for key, statement in stub.items():
                if not isinstance(statement, ast.ClassDef):
                    continue
                with self.subTest(kind=f"{name}.{key}"):
                    real = {member for member in vars(getattr(module, key))
                            if is_public(member) and member not in ALWAYS | {"name", "value"}}
                    written = set(names_in(statement.body)) - {"name", "value"}
                    self.assertEqual(real, written)

    def test_every_submodule_has_a_stub(self) -> None:
        parts = {module.__name__.rpartition(".")[2] for module in submodules()}
        self.assertEqual(parts, {path.stem for path in STUBS.glob("*.pyi")} - {"__init__"})

    def test_every_class_of_a_stub_is_explained(self) -> None:
        for path in STUBS.glob("*.pyi"):
            for name, statement in names_in(ast.parse(path.read_text()).body).items():
                if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
                    with self.subTest(name=f"{path.stem}.{name}"):
                        self.assertTrue(ast.get_docstring(statement))


class DocstringsTest(unittest.TestCase):
    def test_every_public_module_class_and_function_is_explained(self) -> None:
        silent = []
        for module in package_modules():
            if any(part.startswith("_") for part in module.__name__.split(".")):
                continue
            ours = [thing for name, thing in vars(module).items()
                    if is_public(name) and getattr(thing, "__module__", "") == module.__name__
                    and (inspect.isclass(thing) or inspect.isfunction(thing))]
            silent += [f"{module.__name__}.{getattr(thing, '__name__', '')}"
                       for thing in (module, *ours) if not thing.__doc__]
        self.assertEqual(silent, [])


if __name__ == "__main__":
    unittest.main()
