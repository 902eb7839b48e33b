"""Small evaluators of exports to hybrid searches and to engines without a plugin.

As in :mod:`tests.engine_readers`, documents are given as one column of numbers per feature. All belong to
one query; NaN means that the sub-query does not return the document, or that it lacks the field.
"""

from __future__ import annotations

import json
import re
import sqlite3

import numpy as np

from tests.engine_files import need
from tests.painless_reader import Compiler

TINY = np.float32(1e-6)


def only_file(folder):
    (path,) = folder.glob("*.json")
    return json.loads(path.read_text())


def field_of(query):
    """The feature of a sub-query: the only field in it."""
    if isinstance(query, dict):
        if "match" in query:
            return next(iter(query["match"]))
        if isinstance(field := query.get("path", query.get("field")), str):
            return field
    parts = query.values() if isinstance(query, dict) else query if isinstance(query, list) else ()
    return next(filter(None, map(field_of, parts)), None)


def size(columns):
    return len(next(iter(columns.values())))


def added(total, returned, scores, weight):
    """Add the weighted scores of the returned documents to the total, in float32."""
    more = total.copy()
    more[returned] = (total[returned] + np.float32(weight) * scores[returned]).astype(np.float32)
    return more


# --- Elasticsearch and OpenSearch: script_score ----------------------------------------------------------


def script(folder, columns):
    content = json.loads((folder / "script.json").read_text())["script"]
    need(content["lang"] == "painless", "unknown language")
    rescore = json.loads((folder / "query.json").read_text())["rescore"]["query"]["rescore_query"]
    need(set(rescore["script_score"]) == {"query", "script"}, "unknown field")
    compiled = Compiler(content["source"])
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    documents = [{name: value for name, value in row.items() if not np.isnan(value)} for row in rows]
    scores = np.array([compiled.run(document) for document in documents]).astype(np.float32)
    need((scores >= 0).all(), "script_score returned a negative score")
    return scores


# --- Elasticsearch: LinearRetrieverBuilder, MinMaxScoreNormalizer ----------------------------------------


def reciprocal_ranks(scores, k):
    """1/(k + rank), with ties in the order of the index; NaN where a document was not returned."""
    ranked = [row for row in np.argsort(-scores, kind="stable") if not np.isnan(scores[row])]
    values = np.full(len(scores), np.nan, dtype=np.float32)
    for rank, row in enumerate(ranked, start=1):
        values[row] = np.float32(1.0) / np.float32(k + rank)
    return values


def linear_retriever(folder, columns):
    content = only_file(folder)
    ((kind, linear),) = content["retriever"].items()
    if kind == "rrf":
        need(linear["rank_constant"] >= 1, "rank_constant must be at least 1")
        total = np.zeros(size(columns), dtype=np.float32)
        for component in linear["retrievers"]:
            need(component["weight"] >= 0, "weight must be non-negative")
            values = reciprocal_ranks(columns[field_of(component["retriever"])], linear["rank_constant"])
            total = added(total, ~np.isnan(values), values, component["weight"])
        return total
    need(kind == "linear", "unknown retriever")
    need(linear["rank_window_size"] >= content["size"], "rank_window_size must not be below size")
    total = np.zeros(size(columns), dtype=np.float32)
    for component in linear["retrievers"]:
        need(component["weight"] >= 0, "weight must be non-negative")
        need(len(component["retriever"]) == 1, "one retriever")
        scores = np.asarray(columns[field_of(component["retriever"])], dtype=np.float32)
        returned = ~np.isnan(scores)
        if component["normalizer"] == "minmax" and returned.any():
            low, high = scores[returned].min(), scores[returned].max()
            scores = np.where(high - low < TINY, low, (scores - low) / max(high - low, TINY))
        elif component["normalizer"] == "l2_norm" and returned.any():
            norm = np.sqrt(np.sum(scores[returned].astype(np.float64) ** 2))
            scores = (scores / norm).astype(np.float32) if norm > TINY else scores
        elif component["normalizer"] == "l2_norm":
            pass
        else:
            need(component["normalizer"] in ("minmax", "none"), "unknown normalizer")
        total = added(total, returned, scores, component["weight"])
    return total


# --- OpenSearch: NormalizationProcessor, MinMaxScoreNormalizationTechnique, ArithmeticMean… --------------


def opensearch_min_max(scores, returned):
    low, high = scores[returned].min(), scores[returned].max()
    scaled = (scores - low) / (high - low) if high > low else np.ones_like(scores)
    return np.where(scaled == 0, np.float32(0.001), scaled)


def opensearch_l2(scores, returned):
    norm = np.sqrt(np.sum(scores[returned] * scores[returned], dtype=np.float32))
    return scores / norm if norm > 0 else np.full_like(scores, 0.001)


def opensearch_z(scores, returned):
    mean = np.sum(scores[returned], dtype=np.float32) / np.float32(returned.sum())
    squares = np.sum((scores[returned].astype(np.float64) - mean) ** 2)
    deviation = np.float32(np.sqrt(squares / returned.sum()))
    scaled = (scores - mean) / deviation if deviation > 0 else np.full_like(scores, 0.001)
    return np.where(scores == mean, np.float32(1.0), np.where(scaled <= 0, np.float32(0.001), scaled))


OPENSEARCH_TECHNIQUES = {"min_max": opensearch_min_max, "l2": opensearch_l2, "z_score": opensearch_z}


def opensearch_hybrid(folder, columns):
    (processor,) = json.loads((folder / "pipeline.json").read_text())["phase_results_processors"]
    ((kind, settings),) = processor.items()
    if kind == "score-ranker-processor":
        need(settings["combination"]["technique"] == "rrf", "unknown technique")
        k = settings["combination"]["rank_constant"]
        need(1 <= k <= 10_000, "rank constant must be in the interval between 1 and 10000")
        normalised = lambda scores, returned: reciprocal_ranks(scores, k)  # noqa: E731
    else:
        need(kind == "normalization-processor", "unknown processor")
        need(settings["combination"]["technique"] == "arithmetic_mean", "unknown technique")
        normalised = OPENSEARCH_TECHNIQUES[settings["normalization"]["technique"]]
    queries = json.loads((folder / "query.json").read_text())["query"]["hybrid"]["queries"]
    weights = settings["combination"].get("parameters", {}).get("weights")
    if weights is None:
        need(kind == "score-ranker-processor", "weights")
        weights, divisor = [1.0] * len(queries), 1.0
    else:
        need(len(queries) == len(weights), "number of weights")
        need(
            all(isinstance(w, float) and 0 <= w <= 1 for w in weights), "weights must be in range [0.0 … 1.0]"
        )
        need(abs(sum(weights) - 1) < 0.01, "sum of weights must be 1")
        divisor = sum(np.float32(weight) for weight in weights)
    need(len(queries) <= 5, "number of sub-queries")
    total = np.zeros(size(columns), dtype=np.float32)
    for query, weight in zip(queries, weights, strict=True):
        scores = np.asarray(columns[field_of(query)], dtype=np.float32)
        returned = ~np.isnan(scores)
        if returned.any():
            total = added(total, returned, normalised(scores, returned), weight)
    return total / np.float32(divisor)


# --- MongoDB: $scoreFusion -------------------------------------------------------------------------------


def mongodb(folder, columns):
    fusion = only_file(folder)[0]["$scoreFusion"]
    pipelines, weights = fusion["input"]["pipelines"], fusion["combination"]["weights"]
    need(set(pipelines) == set(weights), "a weight without a pipeline")
    need(fusion["combination"]["method"] == "avg", "unknown method")
    total = np.zeros(size(columns))
    for name, stages in pipelines.items():
        need(not name.startswith("$") and "." not in name and name, "name of a pipeline")
        need(weights[name] >= 0, "weights must be non-negative")
        scores = np.asarray(columns[field_of(stages)], dtype=np.float64)
        if fusion["input"]["normalization"] == "minMaxScaler":
            width = np.nanmax(scores) - np.nanmin(scores)
            scores = (scores - np.nanmin(scores)) / (width or 1.0)
        else:
            need(fusion["input"]["normalization"] == "none", "unknown normalization")
        total += weights[name] * np.nan_to_num(scores)
    return total / len(pipelines)


# --- Elasticsearch: ES|QL, LinearScoreEvalOperator, RrfScoreEvalOperator --------------------------------


def esql(folder, columns):
    """Each branch of FORK is a list by descending score; FUSE adds weighted scores or reciprocal ranks."""
    content = only_file(folder)
    need(content["params"] == [{"words": "YOUR QUERY"}], "unknown parameters")
    source, *rest = content["query"].split("\n| ")
    need(source == "FROM YOUR_INDEX METADATA _id, _index, _score", "FUSE needs _id, _index and _score")
    condition = r"WHERE MATCH\(`((?:[^`]|``)+)`, \?words\)"
    if rest[0].startswith("WHERE "):  # without FORK the order is that of the only list
        need(rest[2].startswith("SORT _score DESC | LIMIT "), "not sorted")
        field = re.fullmatch(condition, rest[0])[1].replace("``", "`")
        weight = float(re.fullmatch(r"EVAL _score = (\S+) \* _score", rest[1])[1])
        return weight * np.nan_to_num(np.asarray(columns[field], dtype=np.float64))
    fork, fuse, sort = rest
    branch = condition + r" \| SORT _score DESC \| LIMIT \d+"
    fields = [name.replace("``", "`") for name in re.findall(rf"\({branch}\)", fork)]
    need(2 <= len(fields) <= 8 and fork.count("| SORT") == len(fields), "number of branches")
    need(sort.startswith("SORT _score DESC | LIMIT "), "not sorted")
    method, options = re.fullmatch(r"FUSE (LINEAR|RRF) WITH (\{.*\})", fuse).groups()
    options = json.loads(options)
    need(all(weight > 0 for weight in options["weights"].values()), "weights must be positive")
    total = np.zeros(size(columns))
    for number, field in enumerate(fields, start=1):
        scores = np.asarray(columns[field], dtype=np.float64)
        returned = ~np.isnan(scores)
        if not returned.any():
            continue
        if method == "RRF":
            values = reciprocal_ranks(scores, options["rank_constant"]).astype(np.float64)
        elif options["normalizer"] == "minmax":
            low, high = np.nanmin(scores), np.nanmax(scores)
            values = np.zeros(len(scores)) if low == high else (scores - low) / (high - low)
        else:
            need(options["normalizer"] == "none", "unknown normalizer")
            values = scores
        total[returned] += options["weights"].get(f"fork{number}", 1.0) * values[returned]
    return total


# --- Milvus: WeightedFunction ----------------------------------------------------------------------------


def milvus(folder, columns):
    content = only_file(folder)
    (function,) = content["functionScore"]["functions"]
    parameters = function["params"]
    need(function["type"] == "Rerank" and parameters["reranker"] == "weighted", "unknown function")
    need(function["inputFieldNames"] == [] and parameters["norm_score"] is False, "raw scores")
    need(len(parameters["weights"]) == len(content["search"]), "number of weights and searches")
    total = np.zeros(size(columns), dtype=np.float32)
    for search, weight in zip(content["search"], parameters["weights"], strict=True):
        need(0 <= weight <= 1, "rank param weight should be in range [0, 1]")
        need(search["limit"] >= content["limit"], "limit of a search")
        scores = np.asarray(columns[search["annsField"]], dtype=np.float32)
        total = added(total, ~np.isnan(scores), scores, weight)
    return total


# --- Redis: FT.HYBRID, HybridLinearScore -----------------------------------------------------------------


def redis(file, columns):
    (path,) = file.glob("*.txt")
    words = re.findall(r'"(?:[^"\\]|\\.)*"|\S+', path.read_text())
    need(words[:3] == ["FT.HYBRID", "YOUR_INDEX", "SEARCH"] and words[4] == "VSIM", "unknown command")
    text, vector = json.loads(words[3]), json.loads(words[5])
    need(words[6:9] == ["$vector", "KNN", "2"] and words[9] == "K", "vector search")
    need(words[11:14] == ["COMBINE", "LINEAR", "6"], "unknown combination")
    combined = dict(zip(words[14:20:2], words[15:20:2], strict=True))
    need(set(combined) == {"ALPHA", "BETA", "WINDOW"}, "unknown arguments")
    fields = [re.fullmatch(r"@((?:\w|\\.)+)(:\(.*\))?", query)[1] for query in (text, vector)]
    names = [re.sub(r"\\(.)", r"\1", field) for field in fields]
    total = np.zeros(size(columns))
    for name, weight in zip(names, (combined["ALPHA"], combined["BETA"]), strict=True):
        total += float(weight) * np.nan_to_num(np.asarray(columns[name], dtype=np.float64))
    return total


# --- Qdrant: formula -------------------------------------------------------------------------------------


def qdrant(folder, columns):
    content = only_file(folder)
    formula, defaults = content["query"]["formula"], content["query"]["defaults"]
    need(set(formula) == {"sum"}, "unknown expression")
    total = np.zeros(size(columns))
    for summand in formula["sum"]:
        if isinstance(summand, float):
            total = total + summand
            continue
        weight, variable = summand["mult"]
        searched = re.fullmatch(r"\$score\[(\d+)\]", variable)
        need(searched is None or int(searched[1]) < len(content["prefetch"]), "no such prefetch")
        values = np.asarray(columns[variable], dtype=np.float64)
        total = total + weight * np.where(np.isnan(values), defaults[variable], values)
    return total


# --- Vespa: global phase with weights as query parameters ------------------------------------------------


def vespa_weights(folder, columns):
    """Rank features are 0 for documents that are not matched; weights come from the query profile."""
    (profile,), (xml,) = folder.glob("*.profile"), folder.glob("*.xml")
    weights = dict(re.findall(r'<field name="input\.(query\(\w+\))">([-\d.]+)</field>', xml.read_text()))
    text = profile.read_text()
    declared = dict(re.findall(r"(query\(\w+\)) double: ([-\d.]+)", text))
    need(declared == weights, "defaults differ from the query profile")
    expression = re.search(r"expression \{\n(.*?)\n +\}", text, re.DOTALL)[1]
    total = np.zeros(size(columns))
    for summand in re.split(r"\n +\+ ", expression.strip()):
        parameter, value = summand.split(" * ", 1)
        ranked = re.fullmatch(r"if\((.+) > 0, reciprocal_rank\((.+), (\d+)\), 0\)", value)
        need(ranked is None or ranked[1] == ranked[2], "another feature")
        scores = np.nan_to_num(np.asarray(columns[ranked[1] if ranked else value], dtype=np.float64))
        if ranked:
            order = np.argsort(-scores, kind="stable")
            reciprocal = np.empty(len(scores))
            reciprocal[order] = 1.0 / (float(ranked[3]) + 1.0 + np.arange(len(scores)))
            scores = np.where(scores > 0, reciprocal, 0.0)
        total = total + float(weights[parameter]) * scores
    return total


# --- SQL: SQLite itself ----------------------------------------------------------------------------------


def sql_hybrid(file, columns):
    def quoted(name):
        return '"' + name.replace('"', '""') + '"'

    rows = [
        (1, row, *(None if np.isnan(value) else float(value) for value in values))
        for row, values in enumerate(zip(*columns.values(), strict=True))
    ]
    with sqlite3.connect(":memory:") as database:
        names = ", ".join(quoted(name) for name in columns)
        database.execute(f"CREATE TABLE results (query, document, {names})")
        places = ", ".join("?" * (len(columns) + 2))
        database.executemany(f"INSERT INTO results VALUES ({places})", rows)
        found = database.execute(file.read_text()).fetchall()
    scores = np.empty(len(rows))
    for _, document, score in found:
        scores[document] = score
    need([score for *_, score in found] == sorted(scores.tolist(), reverse=True), "not in order")
    return scores
