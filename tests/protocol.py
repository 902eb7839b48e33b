"""The papers' protocol for one method, through bench; studies of folds."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from ranksieve.experiment import bench
from ranksieve.methods import Method
from ranksieve.path import sparse_path


def five_fold(make, grid, folds, *, select="ndcg@10", profile="letor", n_jobs=1):
    """The result of one method: fitted on train, selected on valid by ``select``, evaluated on test."""
    with TemporaryDirectory() as out:
        method = Method("method", make=make, grid=grid, select=select)
        options = {"profile": profile, "n_jobs": n_jobs, "normalise": "none"}
        results = bench({"data": folds}, {"method": method}, out=out, **options)
        return results.data_sets["data"].results["method"]


def counts(place):
    """A study of every fold."""
    return {"n_docs": place.fold.train.n_docs, "profile": place.profile}


def path(place):
    """A study that requires labels."""
    return {"alphas": sparse_path(place.fold.train, n_alphas=5).alphas}


def only_first(place):
    """A study of the first fold only."""
    return {"data_set": place.data_set} if place.number == 1 else None


STUDIES = {"counts": counts, "path": path, "only_first": only_first}
