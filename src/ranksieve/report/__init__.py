"""Plain data in, one self-contained HTML page out."""

from ranksieve.report.content import Content, Planted, Support, build_content, planted_features
from ranksieve.report.gains import Gains
from ranksieve.report.page import require_extra, write_report
from ranksieve.report.words import certificate, percent

__all__ = [
    "Content",
    "Gains",
    "Planted",
    "Support",
    "build_content",
    "certificate",
    "percent",
    "planted_features",
    "require_extra",
    "write_report",
]
