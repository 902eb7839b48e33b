"""RankLib's neural networks: RankNet, LambdaRank, ListNet."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.foreign.model import Scorer
from ranksieve.foreign.parts import Network
from ranksieve.foreign.ranklib_source import Source, whole
from ranksieve.formats.text_files import finite_number


def read_network(source: Source) -> Scorer:
    """Feature numbers; the number of hidden layers; their sizes; then ``layer neuron weight …``.

    The weights of a neuron lead to the next layer. The last input neuron is the bias, whose weights lead to
    all neurons of all layers. Without a hidden layer the score σ(w·x + b) ranks like w·x + b, which is
    what we keep.
    """
    place, line = source.line(0)
    features = [whole(word, place, "feature number", 1) for word in line.split()]
    if len(set(features)) < len(features):
        raise ValueError(f"{place}: a feature stands twice among the inputs; write the file again")
    n_hidden = _size(source, 1, "number of hidden layers", least=0)
    hidden = [_size(source, 2 + k, "number of neurons", least=1) for k in range(n_hidden)]
    weights, biases = _layers(source, 2 + n_hidden, [len(features), *hidden, 1])
    if not hidden:
        return source.linear(dict(zip(features, weights[0][:, 0].tolist(), strict=True)), float(biases[0][0]))
    return source.other(Network(np.array(features) - 1, weights, biases))


def _size(source: Source, number: int, what: str, least: int) -> int:
    place, line = source.line(number)
    return whole(line.strip(), place, what, least)


def _layers(
    source: Source, start: int, sizes: list[int]
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Weights (from × to) and biases of each layer."""
    neurons = [(layer, j) for layer in range(len(sizes) - 1) for j in range(sizes[layer] + (layer == 0))]
    bias = (0, sizes[0])
    links = {}
    for number, neuron in enumerate(neurons, start=start):
        n_links = sum(sizes[1:]) if neuron == bias else sizes[neuron[0] + 1]
        links[neuron] = _links(source, number, neuron, n_links)
    weights = (np.array([links[layer, j] for j in range(size)]) for layer, size in enumerate(sizes[:-1]))
    return tuple(weights), tuple(np.split(np.array(links[bias]), np.cumsum(sizes[1:-1])))


def _links(source: Source, number: int, neuron: tuple[int, int], n_links: int) -> list[float]:
    place, line = source.line(number)
    words = line.split()
    if words[:2] != [str(part) for part in neuron] or len(words) != n_links + 2:
        raise ValueError(
            f"{place}: {line[:40]!r} should give the {n_links} weights of neuron {neuron[1]} of layer "
            f"{neuron[0]}; expected: layer neuron weight …"
        )
    return [finite_number(word, place, "weight") for word in words[2:]]
