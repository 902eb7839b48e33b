"""The connection to a Dask cluster: rounds of tasks, their traffic, and readable errors."""

from __future__ import annotations

import errno
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from threading import Lock
from typing import Any, TypeVar

from dask.sizeof import sizeof
from distributed import Client, Future, get_client, get_worker, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from ranksieve._parallel import single_threaded_blas, use_threads
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import buffers
from ranksieve.errors import DataError, ParameterError

T = TypeVar("T")
PACKAGES = ("ranksieve", "numpy", "numba")
NO_WORKER_TIMEOUT = 60.0  # seconds
CONNECT_TIMEOUT = 10.0  # seconds
POLL_INTERVAL = 5.0  # seconds


class ClusterError(ConnectionError):
    """The Dask cluster failed."""


@dataclass
class Traffic:
    """Messages between client and workers: rounds, tasks, and bytes of pickled arguments and results.

    ``working`` is the sum over rounds of the longest task's seconds, ``cpu`` the processor seconds of all
    tasks. The run time beyond ``working`` is communication.
    """

    rounds: int = 0
    tasks: int = 0
    sent: int = 0
    received: int = 0
    working: float = 0.0
    cpu: float = 0.0

    @property
    def messages(self) -> int:
        """Number of messages: the arguments and the result of each task."""
        return 2 * self.tasks

    def since(self, earlier: Traffic) -> Traffic:
        """The traffic since an earlier count."""
        return Traffic(*(now - then for now, then in zip(astuple(self), astuple(earlier), strict=True)))

    def copy(self) -> Traffic:
        return replace(self)


@dataclass(frozen=True)
class Cluster:
    """A Dask client and its traffic."""

    client: Client
    traffic: Traffic = field(default_factory=Traffic)
    _lock: Lock = field(default_factory=Lock)

    @property
    def n_threads(self) -> int:
        return sum(self._workers().values())

    def _workers(self) -> dict[str, int]:
        with self.readable_errors():
            return dict(self.client.nthreads())

    def submit(self, make: Callable[..., Any], *args: Any) -> Future:
        """Submit a task whose result stays on a worker; ``args`` may contain futures."""
        return self.client.submit(on_worker, make, *args, pure=False)

    def round(
        self,
        names: Sequence[str],
        function: Callable[..., T],
        *columns: Sequence[Any],
        common: tuple[Any, ...] = (),
    ) -> list[T]:
        """Run one task per part and return the results in the order of the parts.

        The arguments of a task are its entries of ``columns`` (futures or small values), then ``common``.
        """
        plain = [[one for one in row if not isinstance(one, Future)] for row in zip(*columns, strict=True)]
        futures = self.client.map(
            timed_on_worker,
            [function] * len(names),
            *columns,
            *([one] * len(names) for one in common),
            pure=False,
        )
        timed_results = self.gather(futures, names)
        results = [result for result, _, _ in timed_results]
        traffic, shared = self.traffic, _size((function, common))
        sent, received = sum(_size(row) + shared for row in plain), sum(map(_size, results))
        with self._lock:
            traffic.rounds += 1
            traffic.tasks += len(futures)
            traffic.sent += sent
            traffic.received += received
            traffic.working += max(seconds for _, seconds, _ in timed_results)
            traffic.cpu += sum(cpu for _, _, cpu in timed_results)
        return results

    def gather(self, futures: Sequence[Future], names: Sequence[str]) -> list[Any]:
        """The results of tasks; an error names the part that failed. The tasks are cancelled on any error."""
        try:
            self._wait(futures)
            for future, name in zip(futures, names, strict=True):
                if future.status == "error":
                    raise readable_error(future.exception(), name)
            with self.readable_errors():
                return list(self.client.gather(list(futures)))
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            raise

    def _wait(self, futures: Sequence[Future]) -> None:
        """Wait for all futures; raise an error if the scheduler is gone or no worker appears in time."""
        without_worker = 0.0
        while True:
            with self.readable_errors():
                try:
                    with self.client.as_current():
                        wait(list(futures), timeout=POLL_INTERVAL)
                    return
                except TimeoutError:
                    without_worker = 0.0 if self.client.nthreads() else without_worker + POLL_INTERVAL
            if without_worker >= NO_WORKER_TIMEOUT:
                raise ClusterError(
                    f"the cluster at {self._address} has had no worker for {NO_WORKER_TIMEOUT:g} seconds; "
                    "start workers and run again"
                )

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return str(scheduler.address if scheduler is not None else "its address")

    @contextmanager
    def readable_errors(self) -> Iterator[None]:
        """Turn a lost scheduler or cancelled tasks into a :class:`ClusterError`."""
        try:
            if self.client.status != "running":
                raise CommClosedError
            yield
        except (ClusterError, TimeoutError):
            raise
        except (CommClosedError, CancelledError, OSError) as error:
            if self.client.status == "running" and isinstance(error, CancelledError):
                raise ClusterError(f"Dask cancelled a task ({error}); distribute the data again") from None
            raise ClusterError(
                f"the connection to the Dask scheduler at {self._address} is lost; start the cluster again, "
                "connect a new Client, and distribute the data again"
            ) from None

    def check_versions(self) -> None:
        """Raise an error if a worker lacks a package or has a different version than this process."""
        versions_of = _version_finder()
        ours = versions_of(PACKAGES)
        with self.readable_errors():
            theirs = self.client.run(versions_of, PACKAGES)
        if not theirs:
            raise ClusterError(
                f"the cluster at {self._address} has no workers; start workers, then distribute the data"
            )
        for worker, versions in sorted(theirs.items()):
            for package in PACKAGES:
                if versions[package] is None or versions[package] != ours[package]:
                    raise ValueError(
                        f"worker {worker} has {package} {versions[package]} but this process has "
                        f"{ours[package]}; install the same version on both"
                    )


def as_cluster(client: Any) -> Cluster:
    """The cluster of a client or an address; by default of the current client."""
    if isinstance(client, Cluster):
        return client
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ParameterError(
                "client", None, "there is no Dask client; create one first: distributed.Client(address)"
            ) from None
    if not isinstance(client, Client):
        client = connect(client)
    if client.asynchronous:
        raise ParameterError("client", client, "must not be asynchronous; give distributed.Client(address)")
    return Cluster(client)


def connect(address: str) -> Client:
    """Connect to the scheduler at an address."""
    try:
        return Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); check the address, such as "
            "tcp://host:8786, and that the scheduler is running"
        ) from None


def on_worker(function: Callable[..., T], *args: Any) -> T:
    """Call a function with one thread, because every thread of a worker runs its own task."""
    with use_threads(1), single_threaded_blas():
        try:
            return function(*args)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise ClusterError(
                    f"no space left on the disk of worker {get_worker().address}"
                    f"{f' ({error.filename})' if error.filename else ''}; free some, or give the worker a "
                    "local_directory on another disk"
                ) from None
            raise


def timed_on_worker(function: Callable[..., T], *args: Any) -> tuple[T, float, float]:
    """The result of the function, its wall-clock seconds and its processor seconds."""
    start, cpu = time.perf_counter(), time.thread_time()
    result = on_worker(function, *args)
    return result, time.perf_counter() - start, time.thread_time() - cpu


def readable_error(error: BaseException, name: str) -> BaseException:
    """The error of a task as a message of one sentence with the name of its part."""
    if isinstance(error, KilledWorker):
        return ClusterError(
            f"{name}: its workers died repeatedly, the last one at {error.last_worker.address}, probably for "
            "lack of memory; use more parts, or workers with more memory"
        )
    if isinstance(error, CancelledError):
        return ClusterError(f"{name}: the task was cancelled; distribute the data again")
    if isinstance(error, ClusterError):
        return ClusterError(f"{name}: {error}")
    if isinstance(error, MemoryError):
        return MemoryError(f"{name}: {error}")
    if isinstance(error, OSError):
        file, what = (None, error) if error.strerror is None else (error.filename or name, error.strerror)
        return DataError(file, None, f"{what}; every worker must be able to read the data")
    return with_location(error, name) if isinstance(error, ValueError) else error


def with_location(error: ValueError, name: str) -> ValueError:
    """Add the name of a piece to an error, unless it names its file or is about a parameter."""
    if isinstance(error, ParameterError) or (isinstance(error, DataError) and error.file is not None):
        return error
    return error.at(name) if isinstance(error, DataError) else DataError(name, None, str(error))


def _size(value: Any) -> int:
    return len(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def _version_finder() -> Callable[[Sequence[str]], dict[str, str | None]]:
    """A function that workers can run without ranksieve: it is pickled by value, not by name."""

    def versions_of(packages: Sequence[str]) -> dict[str, str | None]:
        import importlib

        versions: dict[str, str | None] = {}
        for package in packages:
            try:
                versions[package] = str(importlib.import_module(package).__version__)
            except ImportError:
                versions[package] = None
        return versions

    return versions_of


def _size_of_rows(data: Dataset) -> int:
    """Size in bytes of the rows of a part; without it, Dask would move them for small tasks."""
    return sum(part.nbytes for part in buffers(data.X)) + data.y.nbytes + data.qid.nbytes


sizeof.register(Dataset, _size_of_rows)
