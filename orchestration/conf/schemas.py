"""The JSON Schemas of the conf's files, for editors and for the hints of `tidemark check`, made from the settings' declarations.

python -m orchestration.conf.schemas    # or `make conf`: writes conf/schema/*.json and the tables of conf/README.md anew
"""

import functools
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orchestration.conf.files import MODELS

Node = dict[str, Any]
CONF = Path(__file__).parents[2] / "conf"


class _Generator(GenerateJsonSchema):
    """Pydantic's schemas without what says nothing to people: titles made of names, and null as the default of what may be left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Null means that the key may be left out."""
        return self.generate_inner(schema["schema"]) if schema.get("default", ...) is None else super().default_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """With names that follow no pattern refused, and not only left unexplained."""
        names, values = self.generate_inner(schema["keys_schema"]), self.generate_inner(schema["values_schema"])
        node: Node = {"type": "object", "propertyNames": names, "additionalProperties": values}
        self.update_with_validations(node, schema, self.ValidationsMapping.object)
        return node


@functools.cache
def schema_of(name: str) -> Node:
    """The JSON Schema of one file of conf, by its name without its ending; `suite` is that of every file in `expectations`."""
    title = "expectations/<name>.yml" if name == "suite" else f"{name}.yml"
    schema = TypeAdapter(MODELS[name]).json_schema(schema_generator=_Generator)
    for node in (schema, *schema.get("$defs", {}).values()):
        node.pop("title", None)
    return {"$schema": _Generator.schema_dialect, "title": title, **schema}


def resolved(node: Node, root: Node) -> Node:
    """The node itself where it refers to another or may be null too; what it says beside the reference wins."""
    inner = node
    if "anyOf" in node:
        inner = node["anyOf"][0]
    if "$ref" in inner:
        inner = root["$defs"][inner["$ref"].removeprefix("#/$defs/")]
    return node if inner is node else {**resolved(inner, root), **node}


def generated() -> dict[str, str]:
    """Text by path below the conf folder: all files that follow from the settings' declarations."""
    from orchestration.conf.reference import reference  # which imports this module

    schemas = {f"schema/{name}.json": json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n" for name in MODELS}
    return schemas | {"README.md": reference((CONF / "README.md").read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, text in generated().items():
        (CONF / path).write_text(text, encoding="utf-8")
