"""One trial: kill a command several times at random moments, check the files, then let it finish."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ranksieve.experiment.journal import has_header, read_journal
from tests.faults.jobs import LOCKS, Job, content

MAIN = "from ranksieve.cli import main; main()"
MARK = "RANKSIEVE_FAULTS_TRIAL"
SIGNALS = (*(signal.SIGKILL,) * 8, signal.SIGTERM, signal.SIGINT)
LONGEST = 300.0  # seconds for a command on a busy machine
PATIENCE = 60.0  # seconds for workers to notice that their parent has died


@dataclass(frozen=True)
class Reference:
    """Results of an undisturbed run of a job."""

    outputs: dict[str, object]
    hidden: set[str]
    seconds: float


@dataclass
class Tally:
    """Counts of events and the faults of one job."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def start(job: Job, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, MARK: str(folder)}
    command = [sys.executable, "-c", MAIN, *job.arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def measure(job: Job, folder: Path) -> Reference:
    """Run a job undisturbed."""
    folder.mkdir()
    began = time.monotonic()
    error = finish(job, folder)
    if error:
        raise RuntimeError(f"{job.name} fails undisturbed: {error}")
    outputs = {name: content(folder / name) for name in job.outputs}
    if lacking := [name for name, output in outputs.items() if output is None]:
        raise RuntimeError(f"{job.name} does not write {', '.join(lacking)}")
    return Reference(outputs, hidden_files(folder), time.monotonic() - began)


def finish(job: Job, folder: Path) -> str:
    """Run a job to its end; returns exit code and stderr if it fails."""
    with start(job, folder) as process:
        stderr = process.communicate(timeout=LONGEST)[1]
    return f"exit code {process.returncode}, {stderr.strip()}" if process.returncode else ""


def try_job(job: Job, folder: Path, reference: Reference, kills: int, draw: random.Random) -> Tally:
    """Kill a job several times in one folder, then let it finish."""
    tally = Tally()
    folder.mkdir()
    if draw.random() < 0.5:
        job.put_old(folder)
    old = {name: content(folder / name) for name in job.outputs}
    for _ in range(kills):
        kill(job, folder, reference, old, draw, tally)
    if error := finish(job, folder):
        tally.faults.append(f"the next run fails: {error}")
    if {name: content(folder / name) for name in job.outputs} != reference.outputs:
        tally.faults.append("the next run differs from an undisturbed one")
    return tally


def kill(
    job: Job, folder: Path, reference: Reference, old: dict[str, object], draw: random.Random, tally: Tally
) -> None:
    """Start a job, send it a signal, and check the files and processes that are left."""
    number, expected_hidden = draw.choice(SIGNALS), hidden_files(folder) | reference.hidden
    before = {} if job.resumes else {name: content(folder / name) for name in job.outputs}
    with start(job, folder) as process:
        _wait_for_moment(process, folder, reference.seconds, draw)
        process.send_signal(number)
        try:
            stderr = process.communicate(timeout=LONGEST)[1]
        except subprocess.TimeoutExpired:
            tally.faults.append(f"does not end after {number.name}")
            process.kill()
            stderr = process.communicate()[1]
    tally.counts[number.name] += 1
    if process.returncode == 0:
        tally.counts["ended before"] += 1
    elif hidden_files(folder) - expected_hidden:
        tally.counts["left hidden files"] += 1
    if number != signal.SIGKILL:
        _check_orderly(process.returncode, stderr, number, hidden_files(folder) - expected_hidden, tally)
    if left := _processes_of(folder):
        tally.faults.append(f"processes stay after {number.name}: {left}")
    if job.resumes:
        tally.faults += _damaged_journals(folder)
    for name, there in before.items():
        if content(folder / name) not in (old[name], there, reference.outputs[name]):
            tally.faults.append(f"{name} is neither the old nor the new one after {number.name}")


def _damaged_journals(folder: Path) -> list[str]:
    """Errors of reading the journals; an incomplete last line is not an error."""
    errors = []
    for path in folder.rglob("*.jsonl"):
        try:
            if has_header(path):
                read_journal(path)
        except ValueError as error:
            errors.append(str(error))
    return errors


def _wait_for_moment(
    process: subprocess.Popen[str], folder: Path, seconds: float, draw: random.Random
) -> None:
    """Wait for a random moment of the run; half of the time, for one just after the first write."""
    if draw.random() < 0.5:
        time.sleep(draw.uniform(0.0, 1.1) * seconds)
        return
    before = _names(folder)
    while process.poll() is None and _names(folder) == before:
        time.sleep(0.001)
    time.sleep(draw.uniform(0.0, 0.02))


def _check_orderly(code: int, stderr: str, number: signal.Signals, hidden: set[str], tally: Tally) -> None:
    """After Ctrl-C or SIGTERM: one message, the right exit code, no files (except during start-up)."""
    if code == 0:
        return
    if "ranksieve: " not in stderr:
        tally.counts["too early"] += 1
    elif code != 128 + number or stderr.count("\n") != 1:
        tally.faults.append(f"after {number.name} exit code {code} and {stderr.strip()!r}")
    if hidden:
        tally.faults.append(f"after {number.name} there is still {', '.join(sorted(hidden))}")


def hidden_files(folder: Path) -> set[str]:
    """All hidden files except the locks of journals."""
    paths = (path.relative_to(folder) for path in folder.rglob(".*"))
    return {str(path) for path in paths if not path.name.startswith(LOCKS)}


def _names(folder: Path) -> set[str]:
    return {name for _, folders, files in os.walk(folder) for name in (*folders, *files)}


def _processes_of(folder: Path) -> list[int]:
    """Processes of a trial that are still running; empty on systems without /proc."""
    mark, until = f"{MARK}={folder}".encode(), time.monotonic() + PATIENCE
    while (pids := [pid for pid in _process_ids() if mark in _environment(pid)]) and time.monotonic() < until:
        time.sleep(0.2)
    return pids


def _process_ids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # has ended, or belongs to another user
        return []
