"""JSON payloads: only the declared fields are read, each as text, so that one odd value cannot spoil its neighbours."""

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from silver.spec import ELEMENT, PayloadFormat

JSON_EVENT, JSON_ELEMENT = "json_event", "json_element"
BROKEN = "tidemark_broken"


def json_event(events: DataFrame, text: Column, shape: PayloadFormat) -> DataFrame:
    """Adds the parsed event (null unless the payload is exactly one object) and `is_readable`.

    Spark reads the first of several objects on a line and forgets the rest. Inside `{"event":[...]}` only a payload
    that is one whole JSON value parses to a list of one. Measured: also refuses `{} x`, `{},{}`, `{}],[{}` and 100,000 brackets.
    """
    wrapper = StructType([StructField("event", ArrayType(_schema(shape))), StructField(BROKEN, StringType())])
    wrapped = F.concat(F.lit('{"event":['), F.when(_stays_inside(text), text), F.lit("]}"))
    parsed = events.withColumn("read", F.from_json(wrapped, wrapper, {"allowSingleQuotes": "false", "columnNameOfCorruptRecord": BROKEN}))
    # Spark gives what it has read of broken JSON, and of an object or list that is none: null without further notice.
    event, is_whole = F.col("read")["event"], F.col("read")[BROKEN].isNull()
    # A generator keeps filters above it, which would otherwise parse each payload a second time.
    only = F.explode_outer(F.when(is_whole & (F.size(event) == 1), event)).alias(JSON_EVENT)
    return parsed.select(*events.columns, only).withColumn("is_readable", F.col(JSON_EVENT).isNotNull())


def _stays_inside(text: Column) -> Column:
    """False for a payload that closes our list itself and opens another: `{}],"x":[{}`. Only what looks like it is parsed twice."""
    alone = F.from_json(F.concat(F.lit('{"event":'), text, F.lit("}")), "event string")["event"]
    return ~F.contains(text, F.lit("]")) | ~text.rlike(r'\]\s*,\s*"') | alone.isNotNull()


def json_field(path: str, root: str = JSON_EVENT) -> Column:
    """A declared field by its dotted path."""
    return F.col(".".join(f"`{name}`" for name in (root, *path.split("."))))


def _schema(shape: PayloadFormat) -> StructType:
    tree = _tree([path for path in shape.fields if not (shape.each and path.startswith(ELEMENT))])
    if shape.each:
        in_element = [path.removeprefix(ELEMENT) for path in shape.fields if path.startswith(ELEMENT)]
        *parents, last = shape.each.split(".")
        node = tree
        for name in parents:
            node = node.setdefault(name, {})
        node[last] = [_tree(in_element)]
    return _struct(tree)


def _tree(paths: list[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for name in path.split("."):
            node = node.setdefault(name, {})
    return tree


def _struct(tree: dict[str, Any]) -> StructType:
    return StructType([StructField(name, _type(node)) for name, node in tree.items()])


def _type(node: dict[str, Any] | list[dict[str, Any]]) -> DataType:
    if isinstance(node, list):
        return ArrayType(_struct(node[0]))
    return _struct(node) if node else StringType()
