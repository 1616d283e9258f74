"""What is shared with bench/programs/truth: its generic settings and its statistics."""

import importlib.machinery
import importlib.util

import catalogue

_loader = importlib.machinery.SourceFileLoader("bench_programs_truth", str(catalogue.known_programs.HERE / "truth"))
_truth = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_programs_truth", _loader))
_loader.exec_module(_truth)

GENERIC, median_ratio, medians = _truth.GENERIC, _truth.median_ratio, _truth.medians
