"""Turns the stubs of the native module into C++, so that help() and inspect.signature() have their words.

    python3 documentation.py zeus/_core output.cc

The stubs (zeus/_core/*.pyi) are the one place that documents the native classes. This writes them as a table that
bindings/documentation.cc applies when the module is imported: a text of a function begins with its signature in the form
that CPython itself uses for built-in functions.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Iterator

Definition = "ast.FunctionDef | ast.ClassDef"


def parameters(function: ast.FunctionDef) -> str:
    """Returns the parameters without annotations: "(self, key, cancel=False)"."""
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            rest.annotation = None
    return f"({ast.unparse(arguments)})"


def decorators(function: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator) for decorator in function.decorator_list}


def words(node: ast.FunctionDef | ast.ClassDef) -> str:
    return inspect.cleandoc(ast.get_docstring(node) or "")


def function_text(function: ast.FunctionDef) -> str:
    return f"{function.name}{parameters(function)}\n--\n\n{words(function)}"


def class_entries(owner: str, definition: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    signature = ""
    for node in definition.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        kinds = decorators(node)
        if node.name == "__init__":
            signature = definition.name + parameters(node) + "\n--\n\n"
            yield f"{owner}.{definition.name}", node.name, function_text(node)
        elif "property" in kinds:
            yield f"{owner}.{definition.name}", node.name, words(node)
        elif not any(kind.endswith(".setter") for kind in kinds):
            yield f"{owner}.{definition.name}", node.name, function_text(node)
    yield owner, definition.name, signature + words(definition)


def entries(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yields the path of the owner ("monitor.Measurement"), the name in it, and the text."""
    for stub in sorted(folder.glob("*.pyi")):
        owner = "" if stub.stem == "__init__" else stub.stem
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield from class_entries(owner, node)
            elif isinstance(node, ast.FunctionDef):
                yield owner, node.name, function_text(node)


def main() -> None:
    folder, output = map(Path, sys.argv[1:])
    # A JSON string without characters beyond ASCII is a C++ string, but for escaped code points.
    lines = [
        "    {" + ", ".join(literal(part) for part in entry) + "},\n" for entry in entries(folder)
    ]
    output.write_text(
        "// Generated from the stubs of the module by python/documentation.py.\n"
        '#include "python/bindings/documentation.h"\n\n'
        "namespace zeus::python {\n\n"
        "const Documentation kDocumentation[] = {\n" + "".join(lines) + "};\n"
        "const std::size_t kDocumentationSize = std::size(kDocumentation);\n\n"
        "}  // namespace zeus::python\n",
        encoding="utf-8",
    )


def literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    main()
