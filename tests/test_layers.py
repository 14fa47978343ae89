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
    "core.py": ("supports", "objectives"),  # of objectives, only a name for types
    "threads.py": (),
    "silence.py": (),
    "parallel.py": ("silence",),
    "linalg.py": ("supports",),
    "checks.py": ("supports", "core"),
    "files.py": (),
    "wording.py": (),
    "progress.py": (),
    "data/": (*BASE, "threads", "silence", "progress", "wording", "data"),
    "driver.py": (*BASE, "threads", "silence"),
    "objectives/": (*BASE, "threads", "files", "linalg", "data", "objectives"),
    "methods/": (*BASE, "threads", "silence", "parallel", "driver", "objectives", "methods"),
    "search/": (*BASE, "driver", "linalg", "objectives", "methods", "search"),
    "selection.py": (*BASE, "threads", "parallel", "driver", "methods", "search", "selection"),
    "certificates/": (
        *BASE,
        "threads",
        "silence",
        "linalg",
        "driver",
        "objectives",
        "selection",
        "certificates",
    ),
    "theory/": (*BASE, "objectives", "theory"),
    "estimators/": (
        *BASE,
        "threads",
        "silence",
        "parallel",
        "data",
        "objectives",
        "methods",
        "selection",
        "certificates",
        "estimators",
    ),
    "datasets/": ("files", "silence", "progress", "data", "datasets"),
    "report/": (
        "ellzero",
        *BASE,
        "data",
        "objectives",
        "selection",
        "certificates",
        "estimators",
        "report",
    ),
    "distributed/": (
        "ellzero",
        *BASE,
        "threads",
        "data",
        "objectives",
        "estimators",
        "distributed",
    ),
    "experiments/": (
        "ellzero",
        "threads",
        "silence",
        "files",
        "objectives",
        "progress",
        "data",
        "datasets",
        "experiments",
    ),
    "cli/": (
        "ellzero",
        "core",
        "checks",
        "files",
        "silence",
        "wording",
        "data",
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
        "methods",
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


def private(name):
    return name.startswith("_") and not name.endswith("__")


OWNERS = {"self", "cls", "super()"}


def test_no_module_reads_the_private_names_of_another(path):
    """A class may use what its base class keeps to itself and to its heirs."""
    tree = parsed(path)
    nodes = list(ast.walk(tree))
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    loads = (n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))
    read = {n.attr for n in loads if ast.unparse(n.value) not in OWNERS}
    froms = (n for n in nodes if isinstance(n, ast.ImportFrom) and n.module.startswith("ellzero"))
    read |= {alias.name for node in froms for alias in node.names}
    foreign = {name for name in read - own if private(name)}
    assert foreign <= FOREIGN_PRIVATE_NAMES


FOREIGN_PRIVATE_NAMES = {
    "_getframe",  # of sys
    "_replace",  # of named tuples
    "_asdict",
    "_fields",
    "_exit",  # of os
    "_meta",  # of Dask's data frames
    "_repr_html_",  # of whatever a notebook shows
}


def test_only_three_places_ask_for_the_kind_of_f():
    """The search, minimisation of many supports at once, and the choice of a proof."""
    kinds = {"Quadratic", "LeastSquares", "GLM", "Logistic", "Multinomial", "Custom"}
    asking = set()
    for file in FILES:
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                kind = ast.unparse(node.args[1])
                if kinds & set(kind.replace("|", " ").split()):
                    asking.add(name_of(file))
    asking = {name for name in asking if not name.startswith("theory/")}
    assert asking <= {"search/auto.py", "objectives/minimisers.py", "certificates/choice.py"}


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
