"""A model as an ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import AnyArray
from ranksieve._version import __version__
from ranksieve.errors import how_to_install, lookup, printable
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    centre_and_scale,
    engine_names,
    fill_values,
    float32,
    prepare_for_export,
    scale32,
    source_names,
    weight32,
)
from ranksieve.export.lucene import far_centres, near_zero, shift_note, tree_summands, warn_of_changed_pairs
from ranksieve.export.trees import Node, Split, curve_trees, flattened

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import LinearModel

OPSET, IR_VERSION = 13, 8  # old enough for every runtime in use
TREES, TREES_OPSET = "ai.onnx.ml", 3  # the first with float64
NODE_LISTS = tuple(
    f"nodes_{name}"
    for name in ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids", "values")
)
LEAF_LISTS = ("target_treeids", "target_nodeids", "target_ids", "target_weights")
ROUNDED = "Scores are rounded to float32: a tree ensemble in ONNX compares in float64 but returns float32."
PRECISIONS = {name: np.dtype(name) for name in ("float32", "float64")}
Step = tuple[str, list[str], str]  # operation, inputs, output


def onnx(model: LinearModel, options: Options) -> Product:
    """A graph with input ``features`` (documents × features in use) and output ``scores`` (documents).

    The names of the input columns are in the metadata under ``features``, as JSON.
    """
    model = prepare_for_export(model, "ONNX", indicators=True)
    names = engine_names(source_names(model), options.names, ANY_NAME, "ONNX")
    dtype = lookup(PRECISIONS, options.dtype, "dtype")
    single = dtype == np.float32
    if model.has_curves:
        trees = curve_trees(model, "ONNX", single=single)
        if single:
            warn_of_changed_pairs(model, options.sample, "ONNX", tree_summands(trees), model.intercept)
        graph = _serialise_trees(trees, model.intercept, names, options.name, dtype)
        return Product({f"{options.name}.onnx": graph}, () if single else (ROUNDED,))
    notes: tuple[str, ...] = ()
    if single:
        centred, notes = _centred(model, options.sample)
        _check_float32(centred)
        columns = np.array([centred.weights, *centre_and_scale(centred)], dtype=np.float32).T
        summands = [partial(_summand, numbers) for numbers in columns]
        warn_of_changed_pairs(model, options.sample, "ONNX", summands, centred.intercept)
        model = centred
    return Product({f"{options.name}.onnx": _serialise(model, names, options.name, dtype)}, notes)


def _summand(numbers: AnyArray, x: AnyArray) -> AnyArray:
    weight, centre, scale = numbers
    return np.asarray(weight * ((x - centre) / scale))


def _centred(model: LinearModel, sample: Dataset | None) -> tuple[LinearModel, tuple[str, ...]]:
    """Centre features that are far from 0 in the sample, so that sums in float32 keep their digits."""
    from ranksieve.prepare.scaling import Normalisation

    far = far_centres(model, sample)
    if sample is None or not far:
        return model, ()
    shift, centre = near_zero(model.predict(sample)), np.zeros(len(model.terms))
    centre[list(far)] = list(far.values())
    scaling = Normalisation("z", tuple(model.names), tuple(centre), (1.0,) * len(centre))
    preparation = replace(model.preparation, normalisation=scaling)
    intercept = model.intercept + shift + float(centre @ model.weights)
    centred = replace(model, intercept=intercept, preparation=preparation)
    return centred, (shift_note(shift, "ONNX"),)


def _check_float32(model: LinearModel) -> None:
    for term, centre, scale in zip(model.terms, *centre_and_scale(model), strict=True):
        weight32(term.weight, term.name)
        float32(centre, f"the centre of {printable(term.name)}")
        scale32(scale, term.name)
    float32(model.intercept, "the intercept")
    for mean in model.preparation.missing.means:
        float32(mean, "the mean that replaces a missing value")


def _steps(model: LinearModel) -> tuple[list[Step], dict[str, AnyArray]]:
    """[Where(IsNaN(x), fill, x)] → [(x − centre) / scale] → x·w → + intercept, and its constants.

    An indicator is 1 where its feature is missing, else 0·x.
    """
    steps: list[Step] = []
    constants: dict[str, AnyArray] = {"weights": model.weights, "intercept": np.array(model.intercept)}
    x = "features"
    if model.preparation.fills:
        indicators, value = model.preparation.missing.indicators, x
        if indicators:
            constants["counts"] = np.array([float(name not in indicators) for name in model.names])
            steps, value = [("Mul", [x, "counts"], "counted")], "counted"
        constants["fill"] = np.array(fill_values(model) if model.preparation.missing.learns else [0.0])
        steps += [("IsNaN", [x], "holes"), ("Where", ["holes", "fill", value], "filled")]
        x = "filled"
    if model.preparation.normalisation.learns:
        constants["centre"], constants["scale"] = centre_and_scale(model)
        steps += [("Sub", [x, "centre"], "centred"), ("Div", ["centred", "scale"], "scaled")]
        x = "scaled"
    return [*steps, ("MatMul", [x, "weights"], "sum"), ("Add", ["sum", "intercept"], "scores")], constants


def _serialise(model: LinearModel, names: list[str], title: str, dtype: np.dtype[Any]) -> bytes:
    _require_onnx()
    from onnx import helper, numpy_helper

    steps, constants = _steps(model)
    nodes = [helper.make_node(operation, inputs, [output]) for operation, inputs, output in steps]
    tensors = [numpy_helper.from_array(values.astype(dtype), name) for name, values in constants.items()]
    return _graph(nodes, tensors, names, title, dtype)


def _require_onnx() -> None:
    if find_spec("onnx") is None:
        raise ImportError(f"ONNX files require the package onnx: {how_to_install('onnx')}")


def _serialise_trees(
    trees: Sequence[Node], intercept: float, names: list[str], title: str, dtype: np.dtype[Any]
) -> bytes:
    """A tree ensemble, whose output (documents × 1, float32) becomes the scores."""
    _require_onnx()
    from onnx import helper, numpy_helper

    single = dtype == np.float32
    columns = _ensemble(trees)
    columns["base_values"] = [float32(intercept, "the intercept") if single else intercept]
    if not single:
        for name in ("nodes_values", "target_weights", "base_values"):
            columns[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(columns.pop(name)), name)
    number = helper.np_dtype_to_tensor_dtype(dtype)
    ensemble = helper.make_node(
        "TreeEnsembleRegressor", ["features"], ["sums"], domain=TREES, n_targets=1, **columns
    )
    nodes = [
        ensemble,
        helper.make_node("Reshape", ["sums", "shape"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["scores"], to=number),
    ]
    shape = numpy_helper.from_array(np.array([-1]), "shape")
    return _graph(nodes, [shape], names, title, dtype, helper.make_opsetid(TREES, TREES_OPSET))


def _ensemble(trees: Sequence[Node]) -> dict[str, Any]:
    """Attributes by name, one entry per node or leaf. NaN is not less than a threshold, so it goes right."""
    nodes, leaves = [], []
    for j, root in enumerate(trees):
        for k, (node, left, right) in enumerate(flattened(root)):
            if isinstance(node, Split):
                nodes.append((j, k, j, "BRANCH_LT", left, right, node.threshold))
            else:
                nodes.append((j, k, 0, "LEAF", 0, 0, 0.0))
                leaves.append((j, k, 0, node))
    columns = (*zip(*nodes, strict=True), *zip(*leaves, strict=True))
    return {name: list(values) for name, values in zip((*NODE_LISTS, *LEAF_LISTS), columns, strict=True)}


def _graph(
    nodes: list[Any], tensors: list[Any], names: list[str], title: str, dtype: np.dtype[Any], *opsets: Any
) -> bytes:
    from onnx import checker, helper

    number = helper.np_dtype_to_tensor_dtype(dtype)
    graph = helper.make_graph(
        nodes,
        title,
        [helper.make_tensor_value_info("features", number, ["documents", len(names)])],
        [helper.make_tensor_value_info("scores", number, ["documents"])],
        tensors,
    )
    opset = [helper.make_opsetid("", OPSET), *opsets]
    proto = helper.make_model(graph, producer_name="ranksieve", ir_version=IR_VERSION, opset_imports=opset)
    proto.producer_version = __version__
    helper.set_model_props(proto, {"features": json.dumps(names, ensure_ascii=False)})
    checker.check_model(proto, full_check=True)
    return bytes(proto.SerializeToString())
