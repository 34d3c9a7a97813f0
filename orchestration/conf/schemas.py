"""The JSON Schemas of the conf's files, for editors and for the hints of `tidemark check`, made from the settings' declarations."""

import functools
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orchestration.conf.files import MODELS

Node = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Pydantic's schemas without what says nothing to people: titles made of names, and null as the default of what may be left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Null means that the key may be left out."""
        return self.generate_inner(schema["schema"]) if schema.get("default", ...) is None else super().default_schema(schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """With the meaning of inherited fields: pydantic takes docstrings of the class itself only."""
        node = super().dataclass_schema(schema)
        for base in reversed(schema["cls"].__mro__[1:]):
            for name, field in getattr(base, "__pydantic_fields__", {}).items():
                if field.description and (inherited := node["properties"].get(field.validation_alias or name)):
                    inherited["description"] = field.description
        for name, other in getattr(schema["cls"], "may_lack", {}).items():
            node["required"].remove(name)
            node |= {"if": {"not": {"required": [other]}}, "then": {"required": [name]}}
        return node

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """With names that follow no pattern refused, and not only left unexplained."""
        names, values = self.generate_inner(schema["keys_schema"]), self.generate_inner(schema["values_schema"])
        node: Node = {"type": "object", "propertyNames": names, "additionalProperties": values}
        self.update_with_validations(node, schema, self.ValidationsMapping.object)
        return node


@functools.cache
def schema_of(name: str) -> Node:
    """The JSON Schema of one file of conf, by its name without its ending; `suite` is that of every file in `expectations`, `tests` that of
    every file in `tests`."""
    title = {"suite": "expectations/<name>.yml", "tests": "tests/<name>.yml"}.get(name, f"{name}.yml")
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
