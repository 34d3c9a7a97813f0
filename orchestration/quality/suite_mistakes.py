"""Mistakes of the suites of a conf, all at once: their form, tables, columns, what they compute, and what Great Expectations takes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from expectations.settings import Step
from expectations.suite import COLUMN_ARGUMENTS, Expectation, Suite, suite
from expectations.terms import ConditionError
from expectations.wording import hint, quoted
from gold.schema import KINDS as OF_GOLD
from orchestration.conf.diagnostic import Diagnostic
from orchestration.conf.document import read_document
from orchestration.conf.model import Conf
from orchestration.conf.structure import Finding, check_structure, where
from orchestration.quality.check import checkable_tables, parameters
from orchestration.quality.kinds import KINDS, arguments_refused, is_measure, kind_refused
from orchestration.quality.store import columns_of, copy_rows, create_suite_view, open_store
from orchestration.quality.validation import not_computable

UNKNOWN_COLUMN = re.compile(r'Referenced column "([^"]+)" (?:was )?not found', re.IGNORECASE)


def checked(files: Sequence[Path], conf: Conf) -> tuple[list[Suite], list[Diagnostic]]:
    """The suites that are well formed, and the mistakes of all."""
    sound: list[Suite] = []
    mistakes: list[Diagnostic] = []
    with closing(open_store()) as store:
        checking = _Checking(store, checkable_tables(conf), parameters(conf))
        for file in files:
            read, wrong = _read(file, checking)
            sound += read
            mistakes += wrong
    return sound, sorted(set(mistakes))


def _read(file: Path, checking: "_Checking") -> tuple[list[Suite], list[Diagnostic]]:
    if file.suffix != ".yml" or not re.fullmatch(r"[a-z][a-z0-9_]*", file.stem):
        text = "cannot be the file of a suite; use lower-case letters, digits and _, a letter first, and end it on .yml"
        return [], [Diagnostic(str(file), 1, text)]
    document, unreadable = read_document(file)
    if document is None:
        return [], unreadable
    malformed = check_structure("suite", document.data).findings
    if malformed or unreadable:
        return [], [*unreadable, *(document.diagnostic(finding.path, finding.text) for finding in malformed)]
    read = suite(file.stem, document.data)
    return [read], [document.diagnostic(finding.path, finding.text) for finding in checking.findings(read)]


@dataclass(frozen=True)
class _Checking:
    """`schemas`: of every table that the conf declares; `parameters`: what a $PARAMETER may name."""

    store: duckdb.DuckDBPyConnection
    schemas: Mapping[str, pa.Schema]
    parameters: Mapping[str, Any]

    def findings(self, read: Suite) -> list[Finding]:
        """Mistakes of a suite that is well formed."""
        if wrong := list(self._unknown_tables(read)):
            return wrong
        names = [name for name in self.schemas if read.applies_to(name)]
        of_kind = {self.schemas[name]: name for name in names}.values()
        for table in of_kind:
            columns, uncomputable = self._computed(read, table)
            wrong += [*uncomputable, *self._of_columns(read, table, columns)]
        for n, expectation in enumerate(read.expectations):
            wrong += self._of_expectation(("expectations", n), expectation, names)
        return wrong or [finding for table in of_kind for finding in self._impossible(read, table)]

    def _unknown_tables(self, read: Suite) -> Iterator[Finding]:
        names = [*self.schemas, *(f"gold.*_{kind}" for kind in OF_GOLD)]
        otherwise = "choose one of those that the groups of conf make, or of bronze and silver"
        if not any(map(read.applies_to, self.schemas)):
            yield Finding(("table",), f"table is {quoted(read.table)}, which no table is called; {hint(read.table, names, otherwise)}")
        for n, name in enumerate(read.together_with):
            if name not in self.schemas:
                text = f"together_with names {quoted(name)}, which no table is called; {hint(name, self.schemas, otherwise)}"
                yield Finding(("together_with", n), text)

    def _computed(self, read: Suite, table: str) -> tuple[list[str], list[Finding]]:
        """The names of all columns, wrong ones included so that none is reported twice, and what is wrong with the computed ones."""
        views = [self._declared(name) for name in (table, *read.together_with)]
        plain = replace(read, columns={}, columns_in_sql={})
        own = [name for name, _ in columns_of(self.store, create_suite_view(self.store, plain, views))]
        sound, names, wrong = plain, list(own), list[Finding]()
        for key in ("columns", "columns_in_sql"):
            for name, text in getattr(read, key).items():
                if problem := self._problem(sound, key, (name, text), names, views):
                    wrong.append(Finding((key, name), f"{key}.{name} {problem}"))
                sound = _with_column(sound, key, name, "null" if problem else text)
                names.append(name)
        return names, wrong

    def _problem(self, sound: Suite, key: str, column: tuple[str, str], names: Sequence[str], views: Sequence[str]) -> str | None:
        """The mistake of a column that is computed behind those of `sound`."""
        name, text = column
        if name in names:
            return "has the name of another column; choose another"
        if key == "columns_in_sql" and _is_more_than_an_expression(text):
            return "is no expression, or holds a subquery; write one over columns of the table"
        try:
            create_suite_view(self.store, _with_column(sound, key, name, text), views)
        except ConditionError as error:
            return str(error)
        except duckdb.Error as error:
            if unknown := UNKNOWN_COLUMN.search(str(error)):
                return f"uses {quoted(unknown[1])}, which is not a column; {_hint(unknown[1], names)}"
            return f"cannot be computed ({str(error).splitlines()[0]}); write it as DuckDB has it"
        return None

    def _impossible(self, read: Suite, table: str) -> Iterator[Finding]:
        """Expectations that do not fit the types of their columns, or hold a pattern that is none: DuckDB says so even without rows."""
        view = create_suite_view(self.store, read, [self._declared(name) for name in (table, *read.together_with)])
        of_rows = {n: expectation for n, expectation in enumerate(read.expectations) if not is_measure(expectation)}
        for n, error in not_computable(self.store, view, of_rows, self.parameters).items():
            path: tuple[Step, ...] = ("expectations", n, "kwargs")
            yield Finding(path, f"{where(path)} cannot be computed: {error}; correct it")

    def _declared(self, name: str) -> str:
        view = name.replace(".", "_")
        copy_rows(self.store, view, self.schemas[name].empty_table())
        return view

    def _of_columns(self, read: Suite, table: str, columns: Sequence[str]) -> Iterator[Finding]:
        of_sample: list[tuple[tuple[Step, ...], str]] = [(("sample", n), name) for n, name in enumerate(read.sample)]
        of_arguments = [
            (("expectations", n, "kwargs", argument), name)
            for n, expectation in enumerate(read.expectations)
            for argument in COLUMN_ARGUMENTS
            for name in _names(expectation.kwargs.get(argument))
        ]
        for path, name in (*of_sample, *of_arguments):
            if name not in columns:
                yield Finding(path, f"{where(path)} names {quoted(name)}, which {table} does not have; {_hint(name, columns)}")

    def _of_expectation(self, path: tuple[Step, ...], expectation: Expectation, tables: Sequence[str]) -> Iterator[Finding]:
        kwargs, unknown = self._with_values((*path, "kwargs"), expectation.kwargs)
        yield from unknown
        if refusal := kind_refused(expectation.type):
            yield Finding((*path, "type"), f"{where((*path, 'type'))} is {quoted(expectation.type)}, {refusal}")
        elif (kind := KINDS.get(expectation.type)) and (others := [name for name in tables if not fnmatchcase(name, kind.table)]):
            text = f"is about {kind.table} and not {others[0]}; move it to a suite of {kind.table}"
            yield Finding((*path, "type"), f"{where((*path, 'type'))} is {quoted(expectation.type)}, which {text}")
        elif not unknown:
            for argument, refusal in arguments_refused(expectation.type, kwargs):
                at = (*path, "kwargs", *argument)
                yield Finding(at, f"{where(at)} {refusal}")

    def _with_values(self, path: tuple[Step, ...], value: Any) -> tuple[Any, list[Finding]]:
        """The value with what its $PARAMETERs stand for."""
        if isinstance(value, dict) and (name := value.get("$PARAMETER")) is not None:
            if name in self.parameters:
                return self.parameters[name], []
            remedy = hint(str(name), self.parameters, f"known here: {', '.join(self.parameters)}")
            return None, [Finding(path, f"{where(path)} names {quoted(name)}, which is no $PARAMETER; {remedy}")]
        if not isinstance(value, dict | list):
            return value, []
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        inner = {step: self._with_values((*path, step), part) for step, part in steps}
        wrong = [finding for _, unknown in inner.values() for finding in unknown]
        values = {step: part for step, (part, _) in inner.items()}
        return values if isinstance(value, dict) else list(values.values()), wrong


def _names(value: object) -> list[str]:
    return [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]


def _hint(name: str, columns: Sequence[str]) -> str:
    return hint(name, columns, f"compute it in `columns`, or choose one of {', '.join(columns)}")


def _with_column(computed: Suite, key: str, name: str, text: str) -> Suite:
    columns = {**getattr(computed, key), name: text}
    return replace(computed, columns=columns) if key == "columns" else replace(computed, columns_in_sql=columns)


def _is_more_than_an_expression(sql: str) -> bool:
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.errors.SqlglotError:
        return True
    return not isinstance(tree, exp.Condition) or tree.find(exp.Query) is not None
