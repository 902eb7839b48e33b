"""Targets of fuzzing: how inputs are generated and checked."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz.mutated_json import mutated_json
from tests.fuzz.mutations import mutated, zipped
from tests.fuzz.refusals import Place, outcome


class Target(Protocol):
    """``check``: whether an input is accepted; raises if it is neither accepted nor properly refused."""

    def make(self, rng: Random, /) -> Any: ...
    def check(self, value: Any, /) -> bool: ...


@dataclass(frozen=True)
class Files:
    """Files of one kind: mutated examples, read and used.

    ``use`` is called with the result of ``read`` and the file's path; it may refuse, and contains the
    assertions. ``values`` are examples as JSON values, serialised by ``encode``.
    """

    name: str
    read: Callable[[Path], Any]
    use: Callable[[Any, Path], Any] = lambda value, path: None
    examples: Sequence[bytes] = ()
    values: Sequence[Any] = ()
    encode: Callable[[Any], bytes] = lambda value: json.dumps(value).encode()
    gzip: bool = False

    @cached_property
    def place(self) -> Place:
        return Place(self.name)

    @cached_property
    def texts(self) -> list[bytes]:
        return [*self.examples, *map(self.encode, self.values)]

    def make(self, rng: Random) -> bytes:
        """A mutated example."""
        if self.values and rng.random() < 0.6:
            try:
                return self.encode(mutated_json(rng, rng.choice(self.values)))
            except (
                ValueError,
                TypeError,
                AttributeError,
                OverflowError,
                struct.error,
            ):  # the format cannot store the value
                return b""
        content = mutated(rng, rng.choice(self.texts), self.texts)
        return zipped(rng, content) if self.gzip and rng.random() < 0.02 else content

    def check(self, content: bytes) -> bool:
        path = self.place.holding(content)
        result = outcome(self.read, path)
        return result.accepted and outcome(self.use, result.value, path).accepted
