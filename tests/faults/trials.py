"""One trial: kill a command a few times at random moments, look at what it leaves, then let it end."""

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
LONGEST = 300.0  # seconds for a command, on a machine that is busy
PATIENCE = 60.0  # seconds for workers to see that their parent is gone


@dataclass(frozen=True)
class Reference:
    """What a job gives when nobody disturbs it."""

    outputs: dict[str, object]
    hidden: set[str]
    seconds: float


@dataclass
class Tally:
    """What happened to one job, and all that was wrong."""

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
    said = finish(job, folder)
    if said:
        raise RuntimeError(f"{job.name} fails undisturbed: {said}")
    outputs = {name: content(folder / name) for name in job.outputs}
    if lacking := [name for name, found in outputs.items() if found is None]:
        raise RuntimeError(f"{job.name} does not write {', '.join(lacking)}")
    return Reference(outputs, hidden_files(folder), time.monotonic() - began)


def finish(job: Job, folder: Path) -> str:
    """Run a job to its end; what it says if it fails."""
    with start(job, folder) as process:
        said = process.communicate(timeout=LONGEST)[1]
    return f"exit code {process.returncode}, {said.strip()}" if process.returncode else ""


def try_job(job: Job, folder: Path, reference: Reference, kills: int, draw: random.Random) -> Tally:
    """Kill a job several times in one folder, then let it end."""
    tally = Tally()
    folder.mkdir()
    if draw.random() < 0.5:
        job.put_old(folder)
    old = {name: content(folder / name) for name in job.outputs}
    for _ in range(kills):
        kill(job, folder, reference, old, draw, tally)
    if said := finish(job, folder):
        tally.faults.append(f"the next run fails: {said}")
    if {name: content(folder / name) for name in job.outputs} != reference.outputs:
        tally.faults.append("the next run gives something else than an undisturbed one")
    return tally


def kill(
    job: Job, folder: Path, reference: Reference, old: dict[str, object], draw: random.Random, tally: Tally
) -> None:
    """Start a job, send it a signal, and look at what is left."""
    number, known = draw.choice(SIGNALS), hidden_files(folder) | reference.hidden
    before = {} if job.resumes else {name: content(folder / name) for name in job.outputs}
    with start(job, folder) as process:
        _wait_for_moment(process, folder, reference.seconds, draw)
        process.send_signal(number)
        try:
            said = process.communicate(timeout=LONGEST)[1]
        except subprocess.TimeoutExpired:
            tally.faults.append(f"does not end after {number.name}")
            process.kill()
            said = process.communicate()[1]
    tally.counts[number.name] += 1
    if process.returncode == 0:
        tally.counts["ended before"] += 1
    elif hidden_files(folder) - known:
        tally.counts["left hidden files"] += 1
    if number != signal.SIGKILL:
        _check_orderly(process.returncode, said, number, hidden_files(folder) - known, tally)
    if left := _processes_of(folder):
        tally.faults.append(f"processes stay after {number.name}: {left}")
    if job.resumes:
        tally.faults += _damaged_journals(folder)
    for name, there in before.items():
        if content(folder / name) not in (old[name], there, reference.outputs[name]):
            tally.faults.append(f"{name} is neither the old nor the new one after {number.name}")


def _damaged_journals(folder: Path) -> list[str]:
    """What a reader says of journals that cannot be read; the next writer cuts off at most a torn line."""
    said = []
    for path in folder.rglob("*.jsonl"):
        try:
            if has_header(path):
                read_journal(path)
        except ValueError as error:
            said.append(str(error))
    return said


def _wait_for_moment(
    process: subprocess.Popen[str], folder: Path, seconds: float, draw: random.Random
) -> None:
    """Any moment of a run, or, half of the times, one shortly after it has begun to write."""
    if draw.random() < 0.5:
        time.sleep(draw.uniform(0.0, 1.1) * seconds)
        return
    there = _names(folder)
    while process.poll() is None and _names(folder) == there:
        time.sleep(0.001)
    time.sleep(draw.uniform(0.0, 0.02))


def _check_orderly(code: int, said: str, number: signal.Signals, hidden: set[str], tally: Tally) -> None:
    """After Ctrl-C or SIGTERM: one sentence, the right code, nothing left; none before the program is up."""
    if code == 0:
        return
    if "ranksieve: " not in said:
        tally.counts["too early"] += 1
    elif code != 128 + number or said.count("\n") != 1:
        tally.faults.append(f"after {number.name} exit code {code} and {said.strip()!r}")
    if hidden:
        tally.faults.append(f"after {number.name} there is still {', '.join(sorted(hidden))}")


def hidden_files(folder: Path) -> set[str]:
    """All files that a user does not see, but the locks of journals."""
    paths = (path.relative_to(folder) for path in folder.rglob(".*"))
    return {str(path) for path in paths if not path.name.startswith(LOCKS)}


def _names(folder: Path) -> set[str]:
    return {name for _, folders, files in os.walk(folder) for name in (*folders, *files)}


def _processes_of(folder: Path) -> list[int]:
    """Processes of a trial that do not end; none where the system does not show them."""
    mark, until = f"{MARK}={folder}".encode(), time.monotonic() + PATIENCE
    while (
        found := [pid for pid in _process_ids() if mark in _environment(pid)]
    ) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def _process_ids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return []
