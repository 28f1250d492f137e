"""SQL text to a syntax tree: one SELECT, bounded in size and depth, nothing executed.

Parsing is bounded because the text comes from somebody who may be hostile; what the tree may contain is decided by the
rules that lower it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Set

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from sfumato.core.errors import Unsupported

DIALECT = "duckdb"
LONGEST = 50_000
MOST_NODES = 20_000
DEEPEST = 60

#: Names that only quotes make names, behind FROM and JOIN; texts and quoted names are passed over.
_TABLES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<before>\b(?:from|join)\s+)(?P<name>\w+(?:-\w+)+|[0-9]\w*)""", re.IGNORECASE
)

_STATEMENTS = "only a SELECT can be asked: nothing is created, changed, attached or configured"


def separated(text: str) -> list[str]:
    """The statements of a text, by its semicolons; a text that is one statement as it stands."""
    statements = _statements(text) if isinstance(text, str) and ";" in text else []
    return [sql_text(each) for each in statements] if len(statements) > 1 else [text]


def parse(text: str) -> exp.Select:
    """The one SELECT that the text is."""
    statements = _statements(text)
    if len(statements) != 1:
        raise Unsupported(
            "the text holds several statements; ask them as a batch, under one charge: session.sql_batch(['SELECT …', …])"
        )
    statement = statements[0]
    while isinstance(statement, (exp.Paren, exp.Subquery)):
        refuse_clauses(statement, {"this"}, "a query in parentheses")
        statement = statement.this
    if isinstance(statement, exp.SetOperation):
        raise Unsupported("UNION, INTERSECT and EXCEPT are not supported; ask the parts as separate questions")
    if not isinstance(statement, exp.Select):
        raise Unsupported(_STATEMENTS)
    check_size(statement)
    return statement


def _statements(text: str) -> list[exp.Expression]:
    if not isinstance(text, str) or not text.strip():
        raise Unsupported("the query is empty, or no text; ask with a SELECT (several at once with session.sql_batch)")
    if len(text) > LONGEST:
        raise Unsupported(f"the query is longer than {LONGEST:,} characters")
    _check_characters(text)
    _check_depth(text)
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # its warnings quote the query on the terminal
    try:
        return [entry for entry in sqlglot.parse(text, dialect=DIALECT) if entry is not None]
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        where = f" near line {place.get('line')}, column {place.get('col')}" if place.get("line") else ""
        hint = _table_to_quote(text) or _column_to_quote(text, place.get("highlight"))
        raise Unsupported(f"the query is not valid SQL{where}{hint}") from None
    except (TokenError, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        raise Unsupported("the query is not valid SQL, or too deeply nested") from None


def _table_to_quote(text: str) -> str:
    """What to do where the name of a table has a hyphen or begins with a digit, if the query is SQL once it is quoted."""
    names = [match for match in _TABLES.finditer(text) if match["name"]]
    if not names or not _is_sql(_TABLES.sub(_quoted, text)):
        return ""
    return (
        ". The name of a table with a hyphen, or a digit at its beginning, stands in double quotes: "
        f'FROM "{names[0]["name"]}" (on a command line, put the whole question in single quotes)'
    )


def _quoted(match: re.Match[str]) -> str:
    return f'{match["before"]}"{match["name"]}"' if match["name"] else match[0]


def _is_sql(text: str) -> bool:
    try:
        return bool(sqlglot.parse(text, dialect=DIALECT))
    except (ParseError, TokenError, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        return False


def _column_to_quote(text: str, word: object) -> str:
    """What to do where a column is named like a word of the grammar, which it repeats."""
    keywords = Dialect.get_or_raise(DIALECT).tokenizer_class.KEYWORDS
    if not isinstance(word, str) or word.upper() not in keywords or not word.isalpha():
        return ""
    if not _is_sql(re.sub(rf"(?i)\b{word}\b", r'"\g<0>"', text)):
        return ""
    return f'. {word.upper()} is a word of SQL: write a column of that name in double quotes, "{word}"'


def parse_expression(text: str) -> exp.Expression:
    """One expression, for the builder of queries."""
    select = parse(f"SELECT {text} FROM t")  # noqa: S608  (parsed, never executed)
    if len(select.expressions) != 1 or set(_clauses(select)) - {"expressions", "from_"}:
        raise Unsupported("give one expression, for instance AVG(income)")
    expression: exp.Expression = select.expressions[0]
    return expression


def check_size(tree: exp.Expression) -> None:
    """Refuse a tree that is too large or too deep, before anything walks it recursively."""
    pending = [(tree, 1)]
    nodes = 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if nodes > MOST_NODES:
            raise Unsupported(f"the query has more than {MOST_NODES:,} parts")
        if depth > 4 * DEEPEST:
            raise Unsupported("the query is too deeply nested")
        pending.extend((child, depth + 1) for child in node.iter_expressions())


def refuse_clauses(node: exp.Expression, allowed: Set[str], what: str) -> None:
    """Refuse whatever a node says beyond what is read of it."""
    extra = [name for name, value in node.args.items() if value and name not in allowed]
    if extra:
        raise Unsupported(f"{what} with {extra[0].strip('_').upper()} is not supported")


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unsupported("the query is not valid Unicode text") from None
    if "\x00" in text:
        raise Unsupported("the query contains the character NUL")


def _check_depth(text: str) -> None:
    """Parentheses and CASE nest; deep nesting would exhaust the parser's stack."""
    depth = deepest = 0
    for letter in text:
        if letter in "([":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in ")]":
            depth -= 1
    words = text.upper().split()
    if deepest > DEEPEST or words.count("CASE") > 200 or words.count("NOT") > 500 or words.count("SELECT") > 50:
        raise Unsupported(f"the query is nested more than {DEEPEST} deep")


def conjuncts(node: exp.Expression) -> list[exp.Expression]:
    """The parts of a condition that AND connects."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def without_alias(node: exp.Expression) -> exp.Expression:
    """The expression behind `… AS name`."""
    held = node.this if isinstance(node, exp.Alias) else node
    return held if isinstance(held, exp.Expression) else node


def group_nodes(select: exp.Select) -> list[exp.Expression]:
    """What GROUP BY names, positions resolved."""
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(name) for name in ("grouping_sets", "cube", "rollup", "totals", "all")):
        raise Unsupported("GROUPING SETS, CUBE and ROLLUP are not supported; ask one question per grouping")
    nodes = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if str(node.this).isdecimal() else 0
            if not 1 <= place <= len(select.expressions):
                raise Unsupported("GROUP BY names a position that SELECT does not have")
            node = without_alias(select.expressions[place - 1])
        nodes.append(node)
    return nodes


def sql_text(node: exp.Expression) -> str:
    """A query or a part of it in the dialect in which it is parsed, so that the text means the same when it is asked again."""
    return node.sql(dialect=DIALECT, comments=False)


def function_name(node: exp.Expression) -> str:
    """How a message calls a node."""
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this)[:40]}"
    names = getattr(type(node), "_sql_names", None) or getattr(node, "sql_names", list)()
    return str(names[0]) if names else type(node).__name__.upper()


def _clauses(node: exp.Expression) -> Iterator[str]:
    return (name for name, value in node.args.items() if value)
