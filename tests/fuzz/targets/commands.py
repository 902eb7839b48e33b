"""Command lines: random options of the real commands, with valid and invalid values."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import typer
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from tests.fuzz.refusals import check_sentence, scratch

HOSTILE = (
    "", "-", "-1", "0", "1", "2", "nan", "inf", "1e999", "1_0", "١", "x", "*", "[", "f1", "f1,f2", "a=b",
    "=", "--", "no/such/file", ".", "/dev/null", "\u2028", "x" * 300, "ndcg@5", "ndcg@0", "map", "letor",
    "é\n", "alpha=1", "10**9",
)  # fmt: skip
FILES = (
    "train.txt", "test.txt", "model.json", "costs.csv", "train.parquet", "scores.txt", "qrels.txt",
    "model.run", "log.jsonl", "judgements.txt", "ranklib.txt", "broken.txt", "empty.txt", "folder",
    "out.html", "out.json",
)  # fmt: skip
QUICK = {"fit": ("--set", "n_alphas=4"), "bench": ("--grid", "fast")}
ARGUMENTS = {
    "compare": ("model.json", "ranklib.txt", "test.txt"),
    "convert": ("train.txt", "out.csv"),
    "bench": (".",),
    "methods": ("ranksvm",),
}
SLOW = ("demo", "bench", "subset")  # drawn rarely
USUAL = {"model": "model.json", "train": "train.txt", "folder": "folder"}
CODES = (0, 1, 2)
LIKELY = {
    "method": ("fenchelrank", "ranksvm", "rankboost", "sparseranker", "fsmrank"),
    "metric": ("ndcg@10", "map", "mrr", "p@5"),
    "metrics": ("ndcg@10", "map", "ndcg@5,map"),
    "profile": ("letor", "mslr", "standard"),
    "missing": ("keep", "zero", "query_min", "column_mean", "error"),
    "normalise": ("query", "none", "standard"),
    "max_features": ("1", "2", "5"),
    "settings": ("alpha=0.1", "max_iter=5", "tol=1e-3"),
    "output": ("out.json", "out.html", "out.txt", "-"),
    "costs": ("costs.csv",),
    "max_cost": ("1", "2.5"),
    "valid": ("test.txt",),
}


class CommandLines:
    """Arguments of the program, run in this process in a folder with a few files."""

    @cached_property
    def commands(self) -> dict[str, list[Any]]:
        """The parameters of each command."""
        group = typer.main.get_command(app)
        return {name: list(one.params) for name, one in group.commands.items()}  # type: ignore[attr-defined]

    @cached_property
    def home(self) -> Path:
        """The working directory with its files."""
        folder = scratch() / "home"
        folder.mkdir()
        data = rs.make_ranking(
            n_queries=12, n_features=4, n_informative=2, docs_per_query=(4, 6), random_state=1
        )
        for name in ("train.txt", "test.txt", "train.parquet"):
            rs.write_dataset(data, folder / name)
        model = rs.RankSVM().fit(data)
        model.to_model().save(folder / "model.json")
        rs.io.write_run(data, model.predict(data), folder / "model.run")
        rs.io.write_qrels(data, folder / "qrels.txt")
        (folder / "folder").mkdir()
        texts = {
            "costs.csv": "feature,cost\nf1,1\n*,2\n",
            "scores.txt": "".join(f"{score}\n" for score in model.predict(data)),
            "log.jsonl": '{"qid": 1, "hits": {"hits": []}}\n',
            "judgements.txt": "4 qid:1 # 7555\n",
            "ranklib.txt": "## AdaRank\n1:1 2:0.5\n",
            "broken.txt": "1 qid:1 1:x\n",
            "empty.txt": "",
        }
        for name, text in texts.items():
            (folder / name).write_text(text)
        return folder

    def make(self, rng: Random) -> list[str]:
        """A command, its arguments and up to three options."""
        names = [name for name in self.commands if name not in SLOW or rng.random() < 0.1]
        command = rng.choice(names)
        words = [command, *QUICK.get(command, ())]
        params = self.commands[command]
        names = [param.name for param in params if param.param_type_name == "argument"]
        for usual in ARGUMENTS.get(command, tuple(USUAL.get(name, "test.txt") for name in names)):
            words.append(usual if rng.random() < 0.93 else rng.choice((*FILES, *HOSTILE)))
        options = [param for param in params if param.param_type_name == "option"]
        for option in rng.sample(options, min(len(options), rng.randrange(4))):
            words.append(rng.choice(option.opts))
            if not option.is_flag and rng.random() < 0.97:
                words.append(_value(rng, option))
        if rng.random() < 0.02:
            words.insert(rng.randrange(len(words) + 1), rng.choice(HOSTILE))
        return words

    def check(self, words: list[str]) -> bool:
        """Whether the command succeeds; otherwise stderr must contain one sentence."""
        before = Path.cwd()
        os.chdir(self.home)
        try:
            result = CliRunner().invoke(app, words, input="1 qid:1 1:1\n0 qid:1 1:0\n")
        finally:
            os.chdir(before)
        fault = result.exception
        assert fault is None or isinstance(fault, SystemExit), f"{type(fault).__name__}: {fault}"
        assert result.exit_code in CODES, result.exit_code
        assert "Traceback" not in result.output
        if result.exit_code == 2:
            messages = [
                line for line in result.stderr.splitlines() if not line.startswith("ranksieve: warning:")
            ]
            assert len(messages) == 1, f"{len(messages)} lines: {messages[:4]}"
            check_sentence(messages[0])
        return result.exit_code == 0


def _value(rng: Random, option: Any) -> str:
    if option.name in LIKELY and rng.random() < 0.85:
        return str(rng.choice(LIKELY[option.name]))
    return str(rng.choice(rng.choice((HOSTILE, FILES))))


COMMANDS = CommandLines()
