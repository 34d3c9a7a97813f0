"""What rules.yml means: that each rule is true or false of a reading, and asks for nothing else."""

from collections.abc import Iterator, Mapping, Sequence

import duckdb
from sqlglot import exp

from expectations.translation import parsed, to_duckdb, without_failures
from expectations.wording import hint, quoted
from orchestration.conf.plant_settings import RuleSettings
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding
from silver.rules import BUILT_IN

READING = (
    "device_id varchar, metric varchar, event_time timestamp, value double, unit varchar, aggregation varchar, step_seconds integer, "
    "zone varchar, groups varchar[], attributes map(varchar,varchar), source varchar, ingested_at timestamp, bronze_batch bigint, "
    "bronze_row bigint, part integer, parts integer"
)
"""Columns of silver.readings in types of DuckDB. A test compares them: Arrow, which has them, takes longer to load than all else of a conf.
Instants have no zone, as DuckDB then needs no extension."""
COLUMNS = [column.split()[0] for column in READING.split(", ")]


def check_rules(rules: Mapping[str, RuleSettings], sources: Mapping[str, SourceSettings]) -> Iterator[Finding]:
    """Rules that no reading can be asked, and those that no reading of a source can keep."""
    problems = problems_of_predicates([rule.holds for rule in rules.values()])
    for (name, rule), problem in zip(rules.items(), problems, strict=True):
        if name in BUILT_IN:
            yield Finding(("rules", name), f"{quoted(name)} is the name of a built-in rule; choose another")
        if problem:
            yield Finding.of(("rules", name, "holds"), problem)
        elif problem := _absent_attribute(rule.holds, sources):
            yield Finding.of(("rules", name, "holds"), problem, is_warning=True)


def problems_of_predicates(predicates: Sequence[str]) -> list[str | None]:
    """What is wrong with each predicate over a reading; None for nothing."""
    if not predicates:
        return []
    with duckdb.connect(config={"threads": 1}) as store:
        # One reading, of texts that are no numbers.
        store.execute(f"create table reading ({READING})")
        store.execute("insert into reading (device_id, metric, unit, zone, source) values ('x', 'x', 'x', 'x', 'x')")
        return [_problem(predicate, store) for predicate in predicates]


def _absent_attribute(predicate: str, sources: Mapping[str, SourceSettings]) -> str | None:
    """Which source lacks what the rule asks for; None where it says what is to become of readings without it, or of a source."""
    tree = parsed(predicate)
    if tree.find(exp.Is, exp.Coalesce) or any(column.name == "source" for column in tree.find_all(exp.Column)):
        return None
    asked = [of.expressions[0].name for of in tree.find_all(exp.Bracket) if of.this.name == "attributes"]
    lacking = [(name, attribute) for attribute in asked for name, source in sources.items() if attribute not in source.attributes]
    if not lacking:
        return None
    name, attribute = lacking[0]
    problem = f"asks for attributes['{attribute}'], which source {name} does not have: all of its measurements would be quarantined"
    return f"{problem}; begin it with: source <> '{name}' or ..., or declare the attribute of the source"


def _problem(predicate: str, store: duckdb.DuckDBPyConnection) -> str | None:
    try:
        tree = parsed(predicate)
    except ValueError as error:
        return f"cannot be read: {error}"
    if any(node.comments for node in tree.walk()) or predicate.rstrip().endswith(";"):
        return "contains a comment or a semicolon; write a comment behind a # in the YAML instead"
    if not isinstance(tree, exp.Condition):
        return "is no condition; write one, for example value >= 0"
    for column in tree.find_all(exp.Column):
        if column.parts[0].name.lower() not in COLUMNS:
            name = ".".join(part.name for part in column.parts)
            return f"asks for {quoted(name)}, which a reading does not have; {hint(name, COLUMNS, 'it has ' + ', '.join(COLUMNS))}"
    if tree.find(exp.Query, exp.AggFunc, exp.Window):
        return "asks for more than one reading; write what is true of each one, and leave the rest to a suite of expectations"
    return _problem_of_functions(tree) or _problem_of_type(predicate, tree, store)


def _problem_of_functions(tree: exp.Expr) -> str | None:
    for node in tree.find_all(exp.Anonymous):
        from pyspark.sql import functions  # takes a while

        if not hasattr(functions, name := str(node.this).lower()):
            remedy = hint(name, dir(functions), "look it up in Spark's reference of SQL")
            return f"calls {quoted(name)}, which is no function of Spark; {remedy}"
    return None


def _problem_of_type(predicate: str, tree: exp.Expr, store: duckdb.DuckDBPyConnection) -> str | None:
    try:
        to_duckdb(predicate)
        sql = to_duckdb(without_failures(predicate))
        kind = str(store.execute(f"select typeof(holds), holds from (select {sql} as holds from reading)").fetchall()[0][0]).lower()
    except ValueError as error:
        return str(error)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2]
        return f"cannot be computed ({reason}); compare like with like, for example try_cast(zone as double) > 3, or zone = '3'"
    return None if kind in ("boolean", "unknown") else f"is neither true nor false, but {kind}; compare it, for example value >= 0"
