"""The best models of all sizes as data (`study`) and as a page to read (`render`)."""

from ellzero.report.page import render
from ellzero.report.study import study

__all__ = ["render", "study"]
