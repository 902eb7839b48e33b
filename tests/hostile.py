"""Hostile names: markup, code, paths, formulas, terminal control sequences."""

from __future__ import annotations

HACK = "window.hacked = 1"
MARKUP = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "</SCRIPT ><img src=x onerror=window.hacked=1>",
    "<!-- <script>",
    "--><svg onload=window.hacked=1>",
    "]]><script>window.hacked=1//",
    '"><img src=x onerror=window.hacked=1>',
    "' onmouseover='window.hacked=1",
    '" style="position:fixed',
    "</title><script>window.hacked=1</script>",
    "</style><script>window.hacked=1</script>",
    "</textarea></option></select><b>",
    "<a href=javascript:window.hacked=1>x</a>",
    "&lt;b&gt; &amp; &#x27;",
    "\\u003cb\\u003e",
    "url(javascript:window.hacked=1)",
)
CODE = (
    "`${window.hacked = 1}`",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{x} {y:.4f} {name} {data.0}",
    "%s %(x)s %n",
    "$name ${version} $$",
    "'); window.hacked = 1; ('",
    '"]; import os; os.abort(); #',
    "'''\"\"\"",
    "\\",
    "a\\'b",
    "'].value; return 1; //",
    "__proto__",
    "constructor",
    "toString",
    "w_a",
    "intercept",
)
FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "＝1+1")
LINES_AND_DIRECTIONS = (
    "line\u2028separator",
    "paragraph\u2029separator",
    "right\u202eot\u202c left",
    "\u2066isolate\u2069",
    "zero\u200bwidth",
    "ä 名 😀",
)
LONG = "long " + 1000 * "name</b> "
SHOWN = (*MARKUP, *CODE, *FORMULAS, *LINES_AND_DIRECTIONS, LONG)
"""Names that are shown and stored unchanged."""

CONTROLS = ("new\nline", "carriage\rreturn", "a\ttab", "nul\0", "\x1b[31mred", "\x9b31m", "bell\x07", "\x7f")
HALVES = ("half \ud83d",)
PATHS = (
    "../../x",
    "..",
    ".",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "..\\..\\x",
    "C:\\x",
    "C:x",
    "file:stream",
    "nul\0.txt",
    "CON",
    "aux.txt",
    "com1",
    "LPT9.json",
    "trailing.",
    "trailing ",
    " leading",
    ".hidden",
    "a\nb",
    "x" * 201,
    "名" * 67,
    "half \ud83d",
    "",
)
"""Names that are never used for files."""
