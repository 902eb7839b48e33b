"""Evaluates the subset of Painless that exports use, after Elasticsearch's PainlessLexer and PainlessParser.

``double x = …; x += …; return …;`` with numbers, ``doc['field'].size()`` and ``.value``, ``_score``, Math's
functions, arithmetic, comparisons and ``?:``. Anything else is refused.
"""

from __future__ import annotations

import math
import operator
import re

TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:\\'|\\\\|[^\\'])*')|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign>\+=|==|[-+*/()\[\].;?:<=]))"""
)
MATH = {"log1p": math.log1p, "log": math.log, "sqrt": math.sqrt}
LEVELS = (
    {"==": operator.eq},
    {"<": operator.lt},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv},
)


class NotPainless(Exception):
    """The compiler would reject the script, or this evaluator does not support it."""


def tokens(source):
    """(kind, text) of all tokens."""
    place, result = 0, []
    while source[place:].strip():
        token = TOKEN.match(source, place)
        if token is None:
            raise NotPainless(f"unexpected {source[place : place + 20]!r}")
        result.append((token.lastgroup, token[token.lastgroup]))
        place = token.end()
    return result


class Compiler:
    """Statements and expressions as functions of (document, variables).

    A document maps fields to numbers; missing fields are not in it.
    """

    def __init__(self, source):
        self.tokens, self.place = tokens(source), 0
        self.statements = []
        while self.place < len(self.tokens):
            self.statements.append(self.statement())

    def run(self, document):
        variables = {}
        for name, value in self.statements:
            result = value(document, variables)
            if name == "return":
                return result
            variables[name] = result
        raise NotPainless("no return")

    def peek(self):
        return self.tokens[self.place][1] if self.place < len(self.tokens) else None

    def take(self, *expected):
        if self.peek() is None or (expected and self.peek() not in expected):
            raise NotPainless(f"expected {expected}, got {self.peek()!r}")
        self.place += 1
        return self.tokens[self.place - 1]

    def statement(self):
        _, name = self.take()
        if name == "double":
            _, name = self.take()
            self.take("=")
            value = self.expression()
        elif name == "return":
            value = self.expression()
        else:
            self.take("+=")
            value = self.added(name, self.expression())
        self.take(";")
        return name, value

    @staticmethod
    def added(name, more):
        return lambda document, variables: variables[name] + more(document, variables)

    def expression(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take("?")
        yes = self.expression()
        self.take(":")
        no = self.expression()
        return lambda d, v: yes(d, v) if condition(d, v) else no(d, v)

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        value = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            _, sign = self.take()
            value = self.applied(LEVELS[level][sign], value, self.binary(level + 1))
        return value

    @staticmethod
    def applied(function, *arguments):
        return lambda d, v: function(*(argument(d, v) for argument in arguments))

    def unary(self):
        if self.peek() == "-":
            self.take()
            return self.applied(operator.neg, self.unary())
        kind, text = self.take()
        if kind == "number":
            return lambda d, v: float(text)
        if text == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if text == "doc":
            return self.field()
        if text == "Math":
            self.take(".")
            _, name = self.take(*MATH)
            self.take("(")
            argument = self.expression()
            self.take(")")
            return self.applied(MATH[name], argument)
        if kind == "word":
            return lambda d, v: d["_score"] if text == "_score" else v[text]
        raise NotPainless(f"unexpected {text!r}")

    def field(self):
        self.take("[")
        kind, literal = self.take()
        if kind != "text":
            raise NotPainless(f"{literal} is not a text")
        name = re.sub(r"\\(.)", r"\1", literal[1:-1])
        self.take("]")
        self.take(".")
        _, what = self.take("size", "value")
        if what == "value":
            return lambda d, v: d[name]
        self.take("(")
        self.take(")")
        return lambda d, v: int(name in d)
