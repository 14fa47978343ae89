"""Every solver: each module here that has a SOLVERS list adds to it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.base import Solver


def all_solvers() -> dict[str, tuple[str, Solver]]:
    """Solvers by name, each with the name of its module."""
    modules = sorted(module.name for module in iter_modules(__path__))
    return {
        solver.name: (module, solver) for module in modules for solver in module_solvers(module)
    }


def module_solvers(module: str) -> list[Solver]:
    return list(import_module(f"{__name__}.{module}").SOLVERS)
