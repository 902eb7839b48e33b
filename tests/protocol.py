"""The papers' protocol for one method, through bench."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from ranksieve.experiment import bench
from ranksieve.methods import Method


def five_fold(make, grid, folds, *, select="ndcg@10", profile="letor", n_jobs=1):
    """The result of one method: fitted on train, chosen on vali by ``select``, measured on test."""
    with TemporaryDirectory() as out:
        method = Method("method", make=make, grid=grid, select=select)
        options = {"profile": profile, "n_jobs": n_jobs, "studies": False, "normalise": "none"}
        results = bench({"data": folds}, {"method": method}, out=out, **options)
        return results.data_sets["data"].results["method"]
