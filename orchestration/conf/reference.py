"""The settings reference, conf/README.md: every key of every file, as it is declared; and the files of the JSON Schemas.

python -m orchestration.conf.reference    # or `make conf`: writes conf/schema/*.json and the tables of conf/README.md anew
"""

import json
import re
from collections.abc import Iterator
from os.path import commonpath
from pathlib import Path
from typing import Any

import yaml

from expectations.settings import PLAIN
from orchestration.conf.document import SCALARS, TAG
from orchestration.conf.files import MODELS
from orchestration.conf.schemas import Node, resolved, schema_of

CONF = Path(__file__).parents[2] / "conf"
MAX_WHOLE = 2_147_483_647
"""A bound that says nothing to people: the page leaves it out."""
TYPES = {"string": "text", "boolean": "`true` or `false`", "integer": "whole number", "number": "number", "any": "any value"}
MARK = "<!-- All below is generated from the declarations of settings by `make conf`. -->\n"


class _Dumper(yaml.SafeDumper):
    """Quotes what the conf's own reader takes for something else than a text, and nothing more."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  PyYAML asks for it on the class


for kind, pattern in SCALARS.items():
    _Dumper.add_implicit_resolver(TAG + kind, re.compile(f"^(?:{pattern})$"), None)


def reference(page: str) -> str:
    """The page, in Markdown, with the tables below its introduction made anew."""
    return page.partition(MARK)[0] + MARK + "".join(map(_of_file, MODELS))


def _of_file(name: str) -> str:
    root = schema_of(name)
    text = f"\n## {root['title'].replace('<name>', '*')}\n\n{root['description']}\n\n"
    sections: dict[int, tuple[list[str], Node]] = {}  # every mapping with fixed keys, once, with all the paths at which it may stand
    for at, node in _mappings(root, root, ""):
        sections.setdefault(id(node["properties"]), ([], node))[0].append(at)
    anchors = {key: _anchor(_heading(paths)) for key, (paths, _) in sections.items()}
    text += _table(root, root, anchors)
    for paths, node in sections.values():
        text += f"\n### {_heading(paths)}\n\n{' '.join(node['description'].split())}\n\n{_table(node, root, anchors)}"
    return text


def _mappings(node: Node, root: Node, path: str) -> Iterator[tuple[str, Node]]:
    for key, child in node["properties"].items():
        at, inner = f"{path}.{key}".lstrip("."), resolved(child, root)
        if inner.get("type") == "array":
            at, inner = f"{at}[]", resolved(inner["items"], root)
        elif isinstance(inner.get("additionalProperties"), dict):
            at, inner = f"{at}.<name>", resolved(inner["additionalProperties"], root)
        if "properties" in inner:
            reference = child.get("$ref")
            yield at, root["$defs"][reference.removeprefix("#/$defs/")] if reference else inner
            yield from _mappings(inner, root, at)


def _heading(paths: list[str]) -> str:
    """Paths without what they have in common at their begin, but for the first."""
    first, *others = paths
    shared = commonpath(path.replace(".", "/") for path in paths).replace("/", ".")
    return ", ".join(f"`{path}`" for path in (first, *(path.removeprefix(f"{shared}.") for path in others)))


def _anchor(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _table(node: Node, root: Node, anchors: dict[int, str]) -> str:
    lines = ["| setting | type | default | meaning | example |", "|---|---|---|---|---|"]
    for key, child in node["properties"].items():
        inner = resolved(child, root)
        default = "**required**" if key in node.get("required", ()) else _code(inner["default"]) if "default" in inner else "-"
        examples = " or ".join(map(_code, inner.get("examples", [inner.get("default")])[:2]))
        cells = (f"`{key}`", _type(child, root, anchors), default, " ".join(inner["description"].split()), examples)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _type(child: Node, root: Node, anchors: dict[int, str]) -> str:
    kind = _kind(resolved(child, root), root, anchors)
    others = ["null" if other == {"type": "null"} else _kind(other, root, anchors) for other in child.get("anyOf", ())[1:]]
    return f"{kind}{'; ' if ',' in kind else ' '}or {others[0]}" if others else kind


def _kind(inner: Node, root: Node, anchors: dict[int, str]) -> str:
    if "enum" in inner:
        return "one of " + ", ".join(map(_code, inner["enum"]))
    if "properties" in inner:
        return f"[mapping](#{anchors[id(inner['properties'])]})"
    if inner.get("type") == "array":
        return "list of " + re.sub("^text", "texts", _type(inner["items"], root, anchors))
    if inner.get("type") == "object":
        names = inner["propertyNames"].get("patternErrorMessage", PLAIN)
        return f"names{_rule(names)}, each with {_type(inner['additionalProperties'], root, anchors)}"
    bounds = [f"{word} {inner[key]:,}" for word, key in (("from", "minimum"), ("to", "maximum")) if inner.get(key, MAX_WHOLE) != MAX_WHOLE]
    return " ".join([TYPES[inner.get("type", "any")], *bounds]) + _rule(inner.get("patternErrorMessage", PLAIN))


def _rule(hint: str) -> str:
    return "" if hint == PLAIN else f" ({hint})"


def _code(value: Any) -> str:
    """The value as YAML on one line."""
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    text: str = yaml.dump(plain, Dumper=_Dumper, default_flow_style=True, width=10_000, sort_keys=False)
    return f"`{text.removesuffix('...' + chr(10)).strip()}`"


def generated() -> dict[str, str]:
    """Make all files that follow from the settings' declarations: texts by path below the conf folder."""
    schemas = {f"schema/{name}.json": json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n" for name in MODELS}
    return schemas | {"README.md": reference((CONF / "README.md").read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, text in generated().items():
        (CONF / path).write_text(text, encoding="utf-8")
