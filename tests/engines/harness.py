"""Starts the engines: their jars by Maven, short Java programs as subprocesses, and the table of results."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("RANKSIEVE_ENGINES", HERE.parents[1] / ".engines"))
RESULTS = CACHE / "results"
MAVEN_SECONDS, JAVA_SECONDS, START_SECONDS = 240, 240, 90
UNREACHABLE = []  # why, after the first engine that could not be fetched in time
OPEN = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.util", "java.io", "java.nio", "sun.nio.ch", "java.net")
]


def poms():
    return HERE / "java"


def classpath(name):
    """The jars of ``java/NAME.xml``, resolved once; skips if Java, Maven or the registry is not there."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{name} needs {program}, which is not installed")
    pom = poms() / f"{name}.xml"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    known = CACHE / f"{name}-{digest}.classpath"
    if known.exists() and all(map(os.path.exists, known.read_text().split(os.pathsep))):
        return known.read_text()
    if UNREACHABLE:
        pytest.skip(f"{name}: {UNREACHABLE[0]}")
    CACHE.mkdir(parents=True, exist_ok=True)
    new = known.with_suffix(".new")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
    words = ["mvn", "-q", "-B", "-f", str(pom), goal, f"-Dmdep.outputFile={new}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=MAVEN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        UNREACHABLE.append(f"the Maven registry did not answer within {MAVEN_SECONDS} seconds")
        pytest.skip(f"{name}: {UNREACHABLE[0]}")
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["no reason"]
        pytest.skip(f"{name}: Maven could not fetch its packages: {lines[0][:200]}")
    jars = [jar for entry in new.read_text().split(os.pathsep) for jar in unpacked(Path(entry))]
    new.write_text(os.pathsep.join(jars))
    new.replace(known)
    return known.read_text()


def unpacked(entry):
    """A jar, or the jars of a plugin, whose package is a zip archive."""
    if entry.suffix != ".zip":
        return [str(entry)]
    folder = CACHE / "plugins" / entry.stem
    with zipfile.ZipFile(entry) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jar")]
        archive.extractall(folder, names)
    return [str(folder / name) for name in names]


def java(name, *arguments, options=(), stdin=None, seconds=JAVA_SECONDS):
    """Run ``java/Name.java`` with the jars of NAME; an exception in it fails the test."""
    jars = classpath(name)
    source = next(path for path in poms().glob("*.java") if path.stem.lower() == name)
    words = ["java", "-Xmx1g", *options, *OPEN, "-cp", jars, str(source), *map(str, arguments)]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{source.name} failed:\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    return done.stdout


def version_of(name, artifact):
    """Version of a jar on the classpath."""
    (jar,) = (Path(p) for p in classpath(name).split(os.pathsep) if Path(p).name.startswith(f"{artifact}-"))
    return jar.stem.removeprefix(f"{artifact}-")


def record(engine, version, target, comparisons):
    """Keep the results of a test for the table in docs/exports.md."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    entry = {
        "engine": engine,
        "version": version,
        "target": target,
        "documents": sum(one.documents for one in comparisons),
        "difference": max(one.difference for one in comparisons),
        "orders": sum(one.orders for one in comparisons),
    }
    (RESULTS / f"{engine}-{target}.json".replace(" ", "-")).write_text(json.dumps(entry), encoding="utf-8")


def java_at_least(version):
    """The newest Java of this machine if it has that version, else None."""
    programs = [*Path("/usr/lib/jvm").glob("*/bin/java")]
    if home := os.environ.get("JAVA_HOME"):
        programs.append(Path(home, "bin", "java"))
    numbers = {}
    for program in programs:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
        if found := re.search(r'version "(\d+)', done.stderr):
            numbers[int(found[1])] = str(program)
    newest = max(numbers, default=0)
    return numbers[newest] if newest >= version else None


class Server:
    """An engine as a process with HTTP on the loopback address, stopped at the end."""

    def __init__(self, name, *arguments, jars_of=None, program="java"):
        jars = classpath(jars_of or name)
        source = next(path for path in poms().glob("*.java") if path.stem.lower() == name)
        words = [program, "-Xmx1g", *OPEN, "-cp", jars, str(source), *map(str, arguments)]
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        limit = threading.Timer(START_SECONDS, self.process.kill)
        limit.start()
        for line in self.process.stdout:
            self.log.write(line)
            if ready := re.search(r"READY (\d+)", line):  # perhaps inside a line of its log
                limit.cancel()
                self.address = f"http://127.0.0.1:{ready[1]}"
                threading.Thread(target=self._drain, daemon=True).start()
                return
        limit.cancel()
        self.log.seek(0)
        text = self.log.read()
        self.close()
        raise AssertionError(f"{name} did not start:\n{text[-4000:]}")

    def _drain(self):
        for _ in self.process.stdout:
            pass

    def call(self, method, path, content=None):
        """Send JSON, or lines of JSON, and return the parsed answer."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        request = urllib.request.Request(
            self.address + path,
            data=None if content is None else body,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode()) from None

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Refused(AssertionError):
    """The engine's error message."""
