"""Self-contained HTML pages from plain data."""

from ranksieve.report.curve_figures import CurvePicture, curve_pictures
from ranksieve.report.fit_page import (
    FitContent,
    ModelTest,
    Planted,
    Support,
    build_content,
    content_of_model,
    planted_features,
    write_report,
)
from ranksieve.report.page import Gains, require_extra
from ranksieve.show.formats import certificate, percent

__all__ = [
    "CurvePicture",
    "FitContent",
    "Gains",
    "ModelTest",
    "Planted",
    "Support",
    "build_content",
    "certificate",
    "content_of_model",
    "curve_pictures",
    "percent",
    "planted_features",
    "require_extra",
    "write_report",
]  # fmt: skip
