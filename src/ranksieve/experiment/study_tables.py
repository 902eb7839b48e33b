"""The tables of methods, of claims and of studies together."""

from __future__ import annotations

from ranksieve.experiment.cells import Table
from ranksieve.experiment.claims import claims_tables
from ranksieve.experiment.results import Results
from ranksieve.experiment.studies import study_tables
from ranksieve.experiment.studies.stand_ins import stand_in_table
from ranksieve.experiment.tables import all_tables


def tables_with_studies(results: Results, baseline: str | None = None) -> list[Table]:
    """Every table: of the methods on each data set, of the claims, of the studies, of the stand-ins."""
    return [*all_tables(results, baseline), *claims_tables(results), *studies_of(results)]


def studies_of(results: Results) -> list[Table]:
    """The tables of the studies alone."""
    tables = [table for data_set in results.data_sets.values() for table in study_tables(data_set)]
    stand_ins = stand_in_table(results)
    return tables if stand_ins is None else [*tables, stand_ins]
