"""Commands under system faults: full disks, closed streams, signals, circular links, no cache."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import ranksieve as rs
from ranksieve.cli import app
from ranksieve.cli.output import SignalReceived, raise_on_signals
from ranksieve.kernels import compiling
from tests.test_cli import MAIN, QUICK, process, refused, run

FULL = "ranksieve: standard output: cannot be written (No space left on device)\n"
CLOSED = "ranksieve: standard output: cannot be written (Bad file descriptor)\n"
NO_INPUT = "ranksieve: standard input: cannot be read (Bad file descriptor)\n"
pytestmark = pytest.mark.full
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """Small data, two models and a folder of results."""
    folder = tmp_path_factory.mktemp("faults")
    data = rs.make_ranking(n_queries=12, n_features=5, n_informative=2, random_state=1)
    rs.io.write_letor(data, folder / "d.txt")
    for name, C in (("m", 1.0), ("n", 0.1)):
        rs.RankSVM(C).fit(data).to_model().save(folder / f"{name}.json")
    rs.bench(folder / "d.txt", ["ranksvm"], out=folder / "results", grid="fast")
    return folder


@pytest.fixture
def here(inputs, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def new_files(here) -> set[str]:
    return {path.name for path in here.iterdir() if not path.is_symlink()}


# --- Standard streams --------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_to_a_full_device(arguments):
    with open("/dev/full", "wb") as full:
        done = process(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr.decode()) == (2, FULL)


def with_closed(number, *arguments):
    """Run a command with a standard stream closed, as by the shell's ``>&-``."""
    code = f"import os, sys; os.close({number}); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", code, "-c", MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@posix
@pytest.mark.parametrize(
    ("number", "arguments", "code", "message"),
    [
        (1, ["--help"], 2, CLOSED),
        (
            0,
            ["evaluate", "m.json", "-"],
            2,
            "ranksieve: standard input: cannot be read (Bad file descriptor)\n",
        ),
        (2, ["rank"], 2, ""),
    ],
)
def test_closed_streams(here, number, arguments, code, message):
    done = with_closed(number, *arguments)
    assert (done.returncode, done.stderr) == (code, message)


COMMANDS = [
    ["--help"], ["fit", "--help"], ["demo"], ["fit", "d.txt", *QUICK, "-o", "o.json"],
    ["frontier", "d.txt"], ["subset", "d.txt", "--max-features", "1"], ["path", "d.txt"],
    ["rank", "m.json", "d.txt"],
    ["evaluate", "m.json", "d.txt"], ["compare", "m.json", "n.json", "d.txt"],
    ["explain", "m.json", "d.txt", "--drop"], ["scorecard", "m.json", "d.txt", "-o", "o.json"],
    ["hybrid", "d.txt", "-o", "o.json"],
    ["verify", "m.json", "d.txt"],
    ["inspect", "d.txt"], ["convert", "d.txt", "o.txt"], ["export", "m.json", "--to", "python", "-o", "o.py"],
    ["bench", "d.txt", "--methods=ranksvm", "--grid=fast", "--n-jobs=1", "-o", "o"],
    ["tables", "results"], ["methods"],
]  # fmt: skip


def test_every_command_is_tried():
    assert {words[0] for words in COMMANDS} - {"--help"} == {
        command.callback.__name__ for command in app.registered_commands
    }


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_closed_pipe_is_not_an_error(here, monkeypatch, capfd, words):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        with pytest.raises(SystemExit) as ended:
            app(words, prog_name="ranksieve")
    assert not ended.value.code
    assert "Traceback" not in capfd.readouterr().err


# --- Signals -----------------------------------------------------------------------------------------------


@posix
def test_signals_ignored_by_the_parent_stay_ignored():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raise_on_signals()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        with pytest.raises(SignalReceived):
            signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("error", "code", "how"),
    [(KeyboardInterrupt(), 130, "interrupted"), (SignalReceived(signal.SIGTERM), 143, "ended by SIGTERM")],
)
def test_files_written_before_a_signal_are_kept(here, monkeypatch, error, code, how):
    def stop(*_):
        raise error

    monkeypatch.setattr("ranksieve.cli.fit_output.write_page", stop)
    done = run("fit", "d.txt", "--method", "ranksvm", "-o", "o.json", "--report", "o.html", code=code)
    assert done.stderr == f"ranksieve: {how}\n"
    assert new_files(here) == {"o.json"}


# --- Disks -------------------------------------------------------------------------------------------------

SMALL_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""


@posix
def test_a_page_that_cannot_be_written_keeps_the_model(here):
    arguments = ["fit", "d.txt", "--method", "ranksvm", "-o", "o.json", "--report", "o.html"]
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES + MAIN, *arguments],
        capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
    )  # fmt: skip
    message = "ranksieve: o.html: cannot write there (File too large)\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert rs.load_model("o.json").method == "RankSVM"
    assert new_files(here) == {"o.json"}


def test_a_model_that_cannot_be_written_is_an_error(here, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    refusal = refused("fit", "d.txt", "--method", "ranksvm", "-o", "o.json", "--report", "o.html")
    assert (refusal.error.errno, refusal.error.filename) == (errno.ENOSPC, "o.json")
    assert "disk is full" in refusal
    assert new_files(here) == set()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_protected_folder_is_refused_before_any_work(here, monkeypatch, number):
    def protected(**_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", protected)
    refusal = refused("fit", "d.txt", "-o", "o.json")
    assert refusal.facts == ("o.json", None)
    assert os.strerror(number) in refusal.reason


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["fit", "loop", "-o", "o.json"], "loop"),
        (["rank", "loop", "d.txt"], "loop"),
        (["export", "loop", "--to", "python", "-o", "o.py"], "loop"),
        (["fit", "d.txt", "-o", "loop"], "loop"),
        (["convert", "d.txt", "loop/"], "loop/"),
        (["bench", "d.txt", "-o", "loop"], "loop"),
        (["demo", "-o", "loop"], "loop"),
        (["demo", "-o", "d.txt"], "d.txt"),
        (["fit", "/dev/null", "-o", "o.json"], "/dev/null"),
        (["fit", "d.txt", "-o", "folder"], "folder"),
        (["fit", "folder", "-o", "o.json"], "folder"),
    ],
)
def test_unusable_paths_are_refused(here, words, place):
    Path("loop").symlink_to("pool")
    Path("pool").symlink_to("loop")
    Path("folder").mkdir()
    refusal = refused(*words)
    assert refusal.startswith(f"{place}: ")
    assert isinstance(refusal.error, OSError) or refusal.facts == (place, None)
    assert new_files(here) == {"folder"}


# --- Compiled functions, and systems without POSIX ---------------------------------------------------------


def test_an_installation_where_nothing_can_be_cached(here):
    """Package folder and home are places where numba cannot create folders, not even as root."""
    shutil.copytree(Path(rs.__file__).parent, "site/ranksieve", ignore=shutil.ignore_patterns("__pycache__"))
    Path("site/ranksieve/kernels/__pycache__").touch()
    Path("nowhere").touch()
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    environment = {**variables, "HOME": str(here / "nowhere"), "PYTHONPATH": str(here / "site")}
    done = process("rank", "m.json", "d.txt", env=environment, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"ranksieve: warning: {compiling.NO_CACHE}\n"
    assert done.stdout == run("rank", "m.json", "d.txt").stdout


def test_a_full_disk_for_compiled_functions_is_not_an_error(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(compiling.FunctionCache, "save_overload", full)

    @compiling.kernel
    def twice(x):
        return 2 * x

    assert twice(4) == 8
    assert twice.stats.cache_path  # numba's cache was used


WITHOUT_POSIX = """
import os, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "sched_getaffinity"):
    delattr(os, name)
import signal
del signal.SIGHUP
import ranksieve.cli.output, ranksieve._parallel
from ranksieve._util.files import atomic_folder, atomic_write
ranksieve.cli.output.raise_on_signals()
with atomic_write("o.txt") as file:
    file.write("whole")
with atomic_folder("o", lambda _: True) as folder:
    (folder / "x").write_text("whole")
"""


def test_a_system_without_posix_modules(here):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (Path("o.txt").read_text(), Path("o/x").read_text()) == ("whole", "whole")
    assert new_files(here) == {"o.txt", "o"}
