"""All mutants of a source text, each with one small change of the syntax tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {  # the neighbouring and the opposite operator
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
CALCULATED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
RENAMED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "all": "any", "any": "all"}
REMOVED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """A change, identified by function, text of the line, and ``old → new``."""

    function: str
    line: str
    change: str
    number: int  # line number

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity that does not change if other parts of the file change."""
        return self.function, self.line, self.change


def mutants_of(source: str) -> Iterator[tuple[Mutant, ast.Module]]:
    """Each mutant with the syntax tree of the source; the tree is only valid until the next iteration."""
    tree, lines, counts = ast.parse(source), source.splitlines(), Counter[tuple[str, str, str]]()
    for owner, field, index, node, function in list(_places(tree)):
        for new in _changed(node):
            change = f"{ast.unparse(node)} → {'nothing' if _is_never(new) else ast.unparse(new)}"
            line = lines[node.lineno - 1].strip()
            counts[function, line, change] += 1
            count = counts[function, line, change]
            mutant = Mutant(function, line, change if count == 1 else f"{change} ({count})", node.lineno)
            _put(owner, field, index, ast.fix_missing_locations(ast.copy_location(new, node)))
            yield mutant, tree
            _put(owner, field, index, node)


def _is_never(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Constant)


def _put(owner: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(owner, field, node)
    else:
        getattr(owner, field)[index] = node


def _places(owner: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str, int | None, ast.AST, str]]:
    """All nodes of functions in source order as (parent, field, index, node, function)."""
    for field, value in ast.iter_fields(owner):
        if field in ("decorator_list", "annotation", "returns", "args") and not isinstance(owner, ast.Call):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield from _places(node, f"{function}.{node.name}".strip("."))
            elif isinstance(node, ast.AST) and not _is_left_out(owner, node):
                yield owner, field, index, node, function
                yield from _places(node, function)


def _is_left_out(owner: ast.AST, node: ast.AST) -> bool:
    """Not mutated: module and class level, docstrings, f-strings, imports, assertions, ``strict`` of zip."""
    if isinstance(owner, (ast.Module, ast.ClassDef)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Raise) and ast.unparse(node) == "raise NotImplementedError":
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: only an internal check
        return True
    return isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert))


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """Replacements of a node."""
    match node:
        case ast.Compare():
            for k, op in enumerate(node.ops):
                for other in COMPARED[type(op)]:
                    yield ast.Compare(
                        node.left, [*node.ops[:k], other(), *node.ops[k + 1 :]], node.comparators
                    )
        case ast.BinOp() if type(node.op) in CALCULATED:
            yield ast.BinOp(node.left, CALCULATED[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in CALCULATED:
            yield ast.AugAssign(node.target, CALCULATED[type(node.op)](), node.value)
            yield _never(node)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.IfExp():
            yield node.body
            yield node.orelse
        case ast.Name() if node.id in RENAMED:
            yield ast.Name(RENAMED[node.id], node.ctx)
        case ast.Attribute() if node.attr in RENAMED:
            yield ast.Attribute(node.value, RENAMED[node.attr], node.ctx)
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call()):
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Return() if node.value is not None and ast.unparse(node.value) != "None":
            yield ast.Return(ast.Constant(None))
        case _ if isinstance(node, REMOVED):
            yield _never(node)


def _never(node: ast.stmt) -> ast.stmt:
    """Disable a statement, but keep it in the tree so that the function has the same local variables."""
    return ast.If(ast.Constant(False), [node], [])
