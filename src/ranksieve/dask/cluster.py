"""The cluster as the engine sees it: rounds of small messages, counted, and faults in one sentence."""

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
PATIENCE = 60.0  # seconds without any worker before a round is given up
CONNECT = 10.0  # seconds that a scheduler may take to answer
LOOK = 5.0  # seconds between two looks at whether the cluster is still there


class ClusterError(ConnectionError):
    """The cluster failed; the message is one sentence."""


@dataclass
class Traffic:
    """Messages between client and workers: rounds, tasks, and bytes of pickled arguments and results.

    ``working`` adds up the seconds of each round's longest task, ``cpu`` the processor seconds of all tasks:
    what a run takes beyond ``working`` is the way of the messages.
    """

    rounds: int = 0
    tasks: int = 0
    sent: int = 0
    received: int = 0
    working: float = 0.0
    cpu: float = 0.0

    @property
    def messages(self) -> int:
        """Arguments there and results back."""
        return 2 * self.tasks

    def since(self, before: Traffic) -> Traffic:
        """What was added to an earlier count."""
        return Traffic(*(here - there for here, there in zip(astuple(self), astuple(before), strict=True)))

    def copy(self) -> Traffic:
        return replace(self)


@dataclass(frozen=True)
class Cluster:
    """A Dask client, and what went through it."""

    client: Client
    traffic: Traffic = field(default_factory=Traffic)
    _lock: Lock = field(default_factory=Lock)

    @property
    def n_threads(self) -> int:
        return sum(self._workers().values())

    def _workers(self) -> dict[str, int]:
        with self.plain_faults():
            return dict(self.client.nthreads())

    def submit(self, make: Callable[..., Any], *args: Any) -> Future:
        """A result that stays on the workers; ``args`` may hold futures of others."""
        return self.client.submit(on_worker, make, *args, pure=False)

    def round(
        self,
        names: Sequence[str],
        find: Callable[..., T],
        *columns: Sequence[Any],
        common: tuple[Any, ...] = (),
    ) -> list[T]:
        """One task per part, with its entry of each of ``columns`` (futures of what is on the workers, small
        values) and with the arguments ``common`` to all; what they return, in the order of the parts."""
        plain = [[one for one in row if not isinstance(one, Future)] for row in zip(*columns, strict=True)]
        futures = self.client.map(
            timed_on_worker,
            [find] * len(names),
            *columns,
            *([one] * len(names) for one in common),
            pure=False,
        )
        found = self.gather(futures, names)
        results = [result for result, _, _ in found]
        traffic, shared = self.traffic, _size((find, common))
        sent, received = sum(_size(row) + shared for row in plain), sum(map(_size, results))
        with self._lock:
            traffic.rounds += 1
            traffic.tasks += len(futures)
            traffic.sent += sent
            traffic.received += received
            traffic.working += max(seconds for _, seconds, _ in found)
            traffic.cpu += sum(cpu for _, _, cpu in found)
        return results

    def gather(self, futures: Sequence[Future], names: Sequence[str]) -> list[Any]:
        """The results; a failure in one sentence that names what failed. If interrupted it cancels tasks."""
        try:
            self._wait(futures)
            for future, name in zip(futures, names, strict=True):
                if future.status == "error":
                    raise told(future.exception(), name)
            with self.plain_faults():
                return list(self.client.gather(list(futures)))
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            raise

    def _wait(self, futures: Sequence[Future]) -> None:
        """Until all are done; in vain if the scheduler is gone, or all workers for a minute."""
        alone = 0.0
        while True:
            with self.plain_faults():
                try:
                    with self.client.as_current():
                        wait(list(futures), timeout=LOOK)
                    return
                except TimeoutError:
                    alone = 0.0 if self.client.nthreads() else alone + LOOK
            if alone >= PATIENCE:
                raise ClusterError(
                    f"the cluster at {self._address} has had no worker for {PATIENCE:g} seconds; start some "
                    "and run again"
                )

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return str(scheduler.address if scheduler is not None else "its address")

    @contextmanager
    def plain_faults(self) -> Iterator[None]:
        """Tell in one sentence that the scheduler is gone, or that it has given up tasks."""
        try:
            if self.client.status != "running":
                raise CommClosedError
            yield
        except (ClusterError, TimeoutError):
            raise
        except (CommClosedError, CancelledError, OSError) as error:
            if self.client.status == "running" and isinstance(error, CancelledError):
                raise ClusterError(f"Dask has given up a task ({error}); distribute the data anew") from None
            raise ClusterError(
                f"the connection to the Dask scheduler at {self._address} is lost; start the cluster again, "
                "connect a new Client, and distribute the data anew"
            ) from None

    def check_versions(self) -> None:
        """Refuse workers that lack a package or have another version of it than this process."""
        find = _version_finder()
        ours = find(PACKAGES)
        with self.plain_faults():
            theirs = self.client.run(find, PACKAGES)
        if not theirs:
            raise ClusterError(
                f"the cluster at {self._address} has no workers; start some, then distribute the data"
            )
        for worker, versions in sorted(theirs.items()):
            for package in PACKAGES:
                if versions[package] is None or versions[package] != ours[package]:
                    raise ValueError(
                        f"worker {worker} has {package} {versions[package]} but this process has "
                        f"{ours[package]}; install the same version on both"
                    )


def as_cluster(client: Any) -> Cluster:
    """The cluster of a client, of an address, or of the client that was made last."""
    if isinstance(client, Cluster):
        return client
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ParameterError(
                "client", None, "there is no Dask client; make one first: distributed.Client(address)"
            ) from None
    if not isinstance(client, Client):
        client = connected(client)
    if client.asynchronous:
        raise ParameterError("client", client, "must not be asynchronous; give distributed.Client(address)")
    return Cluster(client)


def connected(address: str) -> Client:
    """A client of the scheduler at an address."""
    try:
        return Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); check the address, such as "
            "tcp://host:8786, and that the scheduler runs"
        ) from None


def on_worker(find: Callable[..., T], *args: Any) -> T:
    """Call a function as a task: one thread, because every thread of a worker has a task of its own."""
    with use_threads(1), single_threaded_blas():
        try:
            return find(*args)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise ClusterError(
                    f"no space is left on the disk of worker {get_worker().address}"
                    f"{f' ({error.filename})' if error.filename else ''}; free some, or give the worker a "
                    "local_directory on another disk"
                ) from None
            raise


def timed_on_worker(find: Callable[..., T], *args: Any) -> tuple[T, float, float]:
    """What the function gives, how long it took, and how long the processor was at it."""
    start, cpu = time.perf_counter(), time.thread_time()
    result = on_worker(find, *args)
    return result, time.perf_counter() - start, time.thread_time() - cpu


def told(error: BaseException, name: str) -> BaseException:
    """What went wrong with a part, in one sentence."""
    if isinstance(error, KilledWorker):
        return ClusterError(
            f"{name}: its worker died again and again, the last time {error.last_worker.address}; it "
            "probably lacks memory: use more parts, or workers with more memory"
        )
    if isinstance(error, CancelledError):
        return ClusterError(f"{name}: the task was cancelled; distribute the data anew")
    if isinstance(error, ClusterError):
        return ClusterError(f"{name}: {error}")
    if isinstance(error, MemoryError):
        return MemoryError(f"{name}: {error}")
    if isinstance(error, OSError):
        file, what = (None, error) if error.strerror is None else (error.filename or name, error.strerror)
        return DataError(file, None, f"{what}; every worker must be able to read the data")
    return located(error, name) if isinstance(error, ValueError) else error


def located(error: ValueError, name: str) -> ValueError:
    """The same error as one about a piece of the data, unless it names its file or is about a parameter."""
    if isinstance(error, ParameterError) or (isinstance(error, DataError) and error.file is not None):
        return error
    return error.at(name) if isinstance(error, DataError) else DataError(name, None, str(error))


def _size(value: Any) -> int:
    return len(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def _version_finder() -> Callable[[Sequence[str]], dict[str, str | None]]:
    """A function that workers can run without our package: it is sent as code, not by its name."""

    def find(packages: Sequence[str]) -> dict[str, str | None]:
        import importlib

        found: dict[str, str | None] = {}
        for package in packages:
            try:
                found[package] = str(importlib.import_module(package).__version__)
            except ImportError:
                found[package] = None
        return found

    return find


def _size_of_rows(data: Dataset) -> int:
    """What the rows of a part take, so that Dask does not move them for little work."""
    return sum(part.nbytes for part in buffers(data.X)) + data.y.nbytes + data.qid.nbytes


sizeof.register(Dataset, _size_of_rows)
