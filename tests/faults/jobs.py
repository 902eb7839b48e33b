"""The commands to kill: their inputs and outputs, and the content that must be equal in two runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import ranksieve as rs
from ranksieve.cli.demo import split_queries
from ranksieve.experiment.benching import bench
from ranksieve.io.folds import deal_folds

INPUTS = Path("..") / "inputs"
QUICK = ("--set", "n_alphas=10", "--set", "cv=2")
TIMES = {"seconds", "fit_seconds", "grid_seconds"}  # keys of values that differ between runs
LOCKS = ".Fold"  # lock files of journals are never deleted


@dataclass(frozen=True)
class Job:
    """A command and its outputs; it runs in a sibling folder of ``inputs``."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    resumes: bool = False

    def put_old(self, folder: Path) -> None:
        """Write an old version of each output."""
        for output in self.outputs:
            if output.endswith(".ranksieve"):
                shutil.copytree(folder.parent / "inputs" / "old.ranksieve", folder / output)
            elif not self.resumes:
                (folder / output).parent.mkdir(exist_ok=True)
                (folder / output).write_bytes(b"old\n")


def _in(name: str) -> str:
    return str(INPUTS / name)


FEW = ("--methods", "ranksvm,fsmrank,listnet", "--grid", "fast")
BENCH = ("bench", _in("train.txt"), *FEW)
JOBS = (
    Job(
        "fit",
        ("fit", _in("train.txt"), "--valid", _in("vali.txt"), *QUICK, "-o", "m.json", "--report", "m.html"),
        ("m.json", "m.html"),
    ),
    Job("bench", ("bench", _in("train.txt"), *FEW, "--n-jobs", "1", "-o", "out"), ("out",), resumes=True),
    Job(
        "bench 2 jobs",
        ("bench", _in("train.txt"), *FEW, "--n-jobs", "2", "-o", "out"),
        ("out",),
        resumes=True,
    ),
    Job("convert to text", ("convert", _in("big.ranksieve"), "big.txt.gz"), ("big.txt.gz",)),
    Job("convert to parquet", ("convert", _in("big.ranksieve"), "big.parquet"), ("big.parquet",)),
    Job("convert to folder", ("convert", _in("big.txt"), "big.ranksieve"), ("big.ranksieve",)),
    Job("tables", ("tables", _in("results"), "--report", "report.html"), ("report.html",)),
    Job(
        "export",
        ("export", _in("model.json"), "--to", "elasticsearch", "-o", "ltr", _in("test.txt")),
        ("ltr/model.json", "ltr/query.json"),
    ),
    Job(
        "subset",
        ("subset", _in("train.txt"), "--max-features", "1..2", "--report", "s.html", "-o", "best.json"),
        ("s.html", "best.json"),
    ),
    Job("path", ("path", _in("train.txt"), "--n-alphas", "20", "-o", "path.json"), ("path.json",)),
)


def make_inputs(folder: Path) -> None:
    """Write the data, the model and the results that the jobs read."""
    folder.mkdir()
    data = rs.make_ranking(n_queries=30, n_features=12, n_informative=3, random_state=1)
    for name, part in zip(("train", "vali", "test"), split_queries(data, 0), strict=True):
        rs.io.write_letor(part, folder / f"{name}.txt")
    big = rs.make_ranking(n_queries=300, n_features=40, n_informative=3, random_state=2)
    rs.io.write_letor(big, folder / "big.txt")
    rs.write_dataset(big, folder / "big.ranksieve")
    rs.write_dataset(data, folder / "old.ranksieve")
    rs.RankSVM().fit(data).to_model().save(folder / "model.json")
    bench({"toy": deal_folds(data, 3)}, ["ranksvm", "fsmrank"], out=folder / "results", grid="fast")


def content(path: Path) -> object:
    """Content that must be equal in two runs: bytes, JSON without times, or all files of a folder."""
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        return {str(f.relative_to(path)): content(f) for f in files if not f.name.startswith(LOCKS)}
    if not path.exists():
        return None
    if path.suffix in (".json", ".jsonl"):
        return [_timeless(json.loads(line)) for line in _texts(path)]
    return path.read_bytes()


def _texts(path: Path) -> list[str]:
    text = path.read_text()
    return text.splitlines() if path.suffix == ".jsonl" else [text] if text != "old\n" else ['"old"']


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in TIMES}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
