"""Calls dbt: what a command line needs from Tidemark, which tables the project makes, which were built, and the exit code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
from dbt.cli.exceptions import DbtUsageException
from dbt.cli.main import cli, dbtRunner, dbtRunnerResult
from dbt.contracts.graph.manifest import Manifest
from dbt.contracts.graph.nodes import ManifestNode
from dbt.exceptions import InvalidSelectorError, ParsingError
from dbt_common.exceptions import CompilationError, DbtConfigError, DbtValidationError

from orchestration.errors import ConfError
from orchestration.serving.dbt.targets import SCHEMA

WRITES = frozenset({"build", "run", "snapshot", "seed", "retry", "clone", "run-operation"})
READS = frozenset({"test", "show", "compile", "docs", "source", "debug"})
"""The rest of the commands need no table: ls, parse, deps, clean, init."""
USES_NEWEST = frozenset({*WRITES, "source"})
NAMING = frozenset({"-s", "-m", "--select", "--models", "--selector", "--inline"})
SELECTING = frozenset({*NAMING, "--exclude", "--resource-type", "--exclude-resource-type"})
SELECTS_OWN = frozenset({"build", "run", "test", "snapshot", "seed", "compile", "docs"})
OWN = "+package:this"  # what the project itself holds, and what that needs
LEAVE_OUT_ROWS = frozenset({"--empty", "--sample"})
PARSING = frozenset({"--vars", "--target", "-t"})
HELP, VERSION = frozenset({"--help", "-h"}), frozenset({"--version", "-v", "-V"})
NOT_STORED = frozenset({"view", "ephemeral"})
DONE, FAILED, USAGE, BROKE = 0, 1, 2, 4


@dataclass(frozen=True)
class CommandLine:
    """A command line of dbt. `command`: None if there is none, or one that dbt does not know. `options`: the words after it."""

    arguments: tuple[str, ...]
    command: str | None
    options: tuple[str, ...] = ()
    is_own: bool = False  # about an own project, and of Tidemark's about what that needs

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> "CommandLine":
        """The command is the first word that is neither an option nor the value of one."""
        valued = {name for option in cli.params if not getattr(option, "is_flag", False) for name in option.opts}
        words = iter(enumerate(arguments))
        for index, word in words:
            if word in cli.commands:
                return cls(tuple(arguments), word, tuple(arguments[index + 1 :]))
            if not word.startswith("-"):
                break
            if word in valued:
                next(words, None)
        return cls(tuple(arguments), None)

    @property
    def selection(self) -> tuple[str, ...]:
        """The selection that is implied; empty: all, or what the command names."""
        return (OWN,) if self.is_own and self.command in SELECTS_OWN and not self._has(NAMING) else ()

    @property
    def is_help(self) -> bool:
        """Whether dbt answers it with a help text or a hint."""
        return self.command is None or bool(HELP & set(self.arguments))

    @property
    def is_version(self) -> bool:
        """Whether it asks for the versions; dbt itself would look for newer ones in the network."""
        return self.command is None and bool(VERSION & set(self.arguments))

    @property
    def is_offline(self) -> bool:
        return self.command not in WRITES | READS or (self.command == "docs" and "serve" in self.arguments)

    @property
    def writes(self) -> bool:
        return self.command in WRITES

    @property
    def leaves_out_rows(self) -> bool:
        """Whether it builds tables that lack rows on purpose."""
        return self._has(LEAVE_OUT_ROWS)

    @property
    def builds_views(self) -> bool:
        """Whether dbt builds every view in this command."""
        return self.command in {"build", "run"} and not self._has(SELECTING)

    @property
    def parsing_options(self) -> list[str]:
        """Options that change how the project is parsed, with their values: every command needs the same."""
        options: list[str] = []
        for index, word in enumerate(self.arguments):
            if word.split("=")[0] in PARSING:
                options += self.arguments[index : index + (1 if "=" in word else 2)]
        return options

    def check(self) -> None:
        """ConfError if the command does not have one of the options."""
        try:
            cli.commands[str(self.command)].make_context(self.command, list(self.options))
        except click.UsageError as error:
            raise ConfError(f"dbt: {error.format_message()}") from None

    def _has(self, options: frozenset[str]) -> bool:
        return any(word.split("=")[0] in options for word in self.arguments)


def invoke(arguments: Sequence[str]) -> dbtRunnerResult:
    """Run dbt, which prints to stdout. ConfError if it does not understand the command line."""
    result = dbtRunner().invoke(list(arguments))
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if isinstance(result.exception, DbtUsageException):
        raise ConfError(f"dbt: {result.exception}")
    return result


def exit_code(result: dbtRunnerResult) -> int:
    """Tidemark's exit code: 1 if models or tests failed, 2 if the project is wrong, 4 if dbt broke."""
    match result.exception:
        case None:
            return DONE if result.success else FAILED
        case DbtConfigError() | CompilationError() | ParsingError() | DbtValidationError() | InvalidSelectorError():
            return USAGE
        case _:
            return BROKE


def schemas(manifest: Manifest) -> set[str]:
    """Schemas of everything that the project makes, including the stored failures of tests."""
    return {node.schema for node in manifest.nodes.values() if node.schema}


def selected_ids(manifest: Manifest, selection: Sequence[str]) -> set[str]:
    """Return the ids of nodes and sources: those that `OWN` selects, or all."""
    manifest.build_parent_and_child_maps()  # type: ignore[no-untyped-call]
    parents, own = manifest.parent_map, manifest.metadata.project_name
    ids, waiting = set[str](), [key for key in parents if not selection or key.split(".")[1] == own]
    while waiting:
        ids.add(key := waiting.pop())
        waiting += {*parents.get(key, ())} - ids
    return ids


def project_tables(manifest: Manifest) -> dict[str, ManifestNode]:
    """The models, snapshots and seeds that are tables, by dbt's id; ConfError if one would not be a Delta table in the lake."""
    nodes = {
        key: node
        for key, node in manifest.nodes.items()
        if node.resource_type in {"model", "snapshot", "seed"} and node.config.materialized not in NOT_STORED
    }
    mistakes = [f"{node.original_file_path}: {node.name} {mistake}" for node in nodes.values() for mistake in _mistakes(node)]
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return nodes


def _mistakes(node: Any) -> Iterator[str]:
    if node.schema != SCHEMA:
        yield f"is a table in schema {node.schema}, but tables of the lake are in {SCHEMA}; remove `schema`, or make it a view"
    if node.config.get("file_format") != "delta":
        yield f"has file_format {node.config.get('file_format')}, but marts are Delta tables; write `file_format: delta`, or leave it out"
    if node.config.get("location_root"):
        yield "has a location_root, but marts lie in the lake; remove it"
