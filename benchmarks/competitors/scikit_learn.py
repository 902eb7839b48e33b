"""scikit-learn's reader and writer for LETOR text."""

from __future__ import annotations

from benchmarks.competitors.base import Competitor


class SvmlightReader(Competitor):
    name, title, licence = "load_svmlight_file", "scikit-learn load_svmlight_file", "BSD-3-Clause"
    package, module = "scikit-learn", "sklearn"
    measures = frozenset({"reading"})


class SvmlightWriter(Competitor):
    name, title, licence = "dump_svmlight_file", "scikit-learn dump_svmlight_file", "BSD-3-Clause"
    package, module = "scikit-learn", "sklearn"
    measures = frozenset({"writing"})
