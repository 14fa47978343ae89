"""Layers point one way, optional packages stay optional, and the library does not print."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ellzero

PACKAGE = Path(ellzero.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
OPTIONAL = {"pandas", "pyarrow", "matplotlib", "dask", "distributed", "jax", "rich"}
NEEDED = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "ellzero"}

BASE = ("supports", "core", "checks")

# What a file may import of ellzero; the last match counts.
ALLOWED = {
    "supports.py": (),
    "core.py": ("supports",),
    "threads.py": (),
    "silence.py": (),
    "parallel.py": ("silence",),
    "linalg.py": ("supports",),
    "checks.py": ("supports", "core"),
    "files.py": (),
    "driver.py": (*BASE, "threads", "silence"),
    "objectives/": (*BASE, "threads", "files", "linalg", "objectives"),
    "algorithms/": (*BASE, "threads", "silence", "parallel", "linalg", "driver", "algorithms"),
    "selection.py": (
        *BASE,
        "threads",
        "parallel",
        "driver",
        "algorithms",
        "selection",
    ),
    "certificates/": (
        *BASE,
        "threads",
        "silence",
        "linalg",
        "driver",
        "algorithms",
        "selection",
        "certificates",
    ),
    "theory/": (*BASE, "objectives", "theory"),
    "estimators/": (
        *BASE,
        "threads",
        "silence",
        "parallel",
        "objectives",
        "algorithms",
        "selection",
        "certificates",
        "estimators",
    ),
    "datasets/": ("files", "silence", "datasets"),
    "report/": (
        "ellzero",
        *BASE,
        "objectives",
        "selection",
        "certificates",
        "estimators",
        "report",
    ),
    "distributed/": ("ellzero", *BASE, "objectives", "estimators", "distributed"),
    "experiments/": ("ellzero", "threads", "silence", "files", "datasets", "experiments"),
    "cli/": (
        "ellzero",
        "core",
        "checks",
        "files",
        "silence",
        "selection",
        "certificates",
        "estimators",
        "datasets",
        "report",
        "experiments",
        "cli",
    ),
    "interrupts.py": (),
    "__main__.py": ("interrupts", "cli"),
    "__init__.py": (
        "interrupts",
        "core",
        "objectives",
        "algorithms",
        "selection",
        "certificates",
        "estimators",
        "theory",
    ),
}


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def imports(nodes):
    """Full names of the modules that these nodes import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module


def at_import(tree):
    """The nodes that run when the module is imported: not function bodies, not TYPE_CHECKING."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(params=FILES, ids=name_of)
def path(request):
    return request.param


def test_layers_point_one_way(path):
    own = [m for m in imports(ast.walk(parsed(path))) if m.split(".")[0] == "ellzero"]
    layers = {m.removeprefix("ellzero.").split(".")[0] for m in own}
    allowed = [a for prefix, a in ALLOWED.items() if name_of(path).startswith(prefix)]
    assert allowed, f"no layer is known for {name_of(path)}: say in this test what it may import"
    assert layers <= set(allowed[-1])


def test_only_what_is_declared_is_imported_at_module_level(path):
    roots = {module.split(".")[0] for module in imports(at_import(parsed(path)))}
    assert roots - sys.stdlib_module_names <= NEEDED


def test_optional_packages_are_known(path):
    roots = {module.split(".")[0] for module in imports(ast.walk(parsed(path)))}
    assert roots - sys.stdlib_module_names <= NEEDED | OPTIONAL


def test_nothing_prints(path):
    calls = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
    assert "print" not in {ast.unparse(call.func) for call in calls}


def run(code):
    """What a fresh interpreter writes."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_import_is_quick_and_loads_no_optional_package():
    """Beside scikit-learn, which loads pandas itself where it can."""
    seconds, *loaded = run(
        "import sys, time, sklearn.linear_model\n"
        "before, start = set(sys.modules), time.process_time()\n"
        "import ellzero\n"
        "seconds = time.process_time() - start\n"
        "sys.stdout.write('\\n'.join([str(seconds), *(set(sys.modules) - before)]))"
    )
    assert "ellzero.core" in loaded
    assert not OPTIONAL & {module.split(".")[0] for module in loaded}
    assert float(seconds) < 0.6


def test_works_where_no_optional_package_is_installed():
    support, error = run(
        f"import sys; sys.modules.update(dict.fromkeys({sorted(OPTIONAL)}))\n"
        "import numpy as np, ellzero as lz\n"
        "f = lz.LeastSquares(np.eye(4), [1.0, 2.0, 3.0, 4.0])\n"
        "sys.stdout.write(f'{lz.exchange(f, 2).support.tolist()}\\n')\n"
        "try: lz.from_jax(lambda x: x.sum(), 3)\n"
        "except ImportError as error: sys.stdout.write(str(error))"
    )
    assert support == "[2, 3]"
    assert "pip install 'ellzero[jax]'" in error


def test_public_names_are_there_and_sorted():
    assert sorted(ellzero.__all__) == list(ellzero.__all__)
    for name in ellzero.__all__:
        assert getattr(ellzero, name).__doc__, f"{name} has no docstring"


def test_types_are_shipped():
    assert (PACKAGE / "py.typed").exists()
