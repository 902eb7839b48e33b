"""Plain data in, one self-contained HTML page out."""

from ranksieve.report.fit_page import (
    Content,
    Planted,
    Support,
    Unseen,
    build_content,
    content_of_model,
    planted_features,
    write_report,
)
from ranksieve.report.page import Gains, certificate, percent, require_extra

__all__ = [
    "Content", "Gains", "Planted", "Support", "Unseen", "build_content", "certificate", "content_of_model",
    "percent", "planted_features", "require_extra", "write_report",
]  # fmt: skip
