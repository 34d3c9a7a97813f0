"""dbt called: what its command line means to us, what its project would write, what it wrote, and its answer as an exit code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

import click
from dbt.cli.exceptions import DbtUsageException
from dbt.cli.main import cli, dbtRunner, dbtRunnerResult
from dbt.exceptions import InvalidSelectorError, ParsingError
from dbt_common.exceptions import CompilationError, DbtConfigError, DbtValidationError

from orchestration.errors import ConfError
from orchestration.serving.dbt.targets import SCHEMA

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

WRITES = frozenset({"build", "run", "snapshot", "seed", "retry", "clone", "run-operation"})
READS = frozenset({"test", "show", "compile", "docs", "source", "debug"})
"""The rest of the commands need no table: ls, parse, deps, clean, init."""
OF_NEWEST = frozenset({*WRITES, "source"})
CHOOSE = frozenset({"-s", "-m", "--select", "--models", "--exclude", "--selector", "--resource-type", "--exclude-resource-type"})
LEAVE_OUT_ROWS = frozenset({"--empty", "--sample"})
OF_PARSING = frozenset({"--vars", "--target", "-t"})
HELP, VERSION = frozenset({"--help", "-h"}), frozenset({"--version", "-v", "-V"})
KEPT_NOWHERE = frozenset({"view", "ephemeral"})
DONE, NO, USAGE, BROKE = 0, 1, 2, 4


@dataclass(frozen=True)
class Target:
    """A table that the project makes: by its SQL name, such as marts.hourly."""

    name: str
    kind: str
    is_incremental: bool


@dataclass(frozen=True)
class Call:
    """A command line of dbt. `command` None: it has none, or one that dbt does not know; `options` are what follows it."""

    arguments: tuple[str, ...]
    command: str | None
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> "Call":
        """The command is the first word that is no option and no value of one."""
        valued = {name for option in cli.params if not getattr(option, "is_flag", False) for name in option.opts}
        words = iter(enumerate(arguments))
        for place, word in words:
            if word in cli.commands:
                return cls(tuple(arguments), word, tuple(arguments[place + 1 :]))
            if not word.startswith("-"):
                break
            if word in valued:
                next(words, None)
        return cls(tuple(arguments), None)

    @property
    def is_help(self) -> bool:
        """Whether it asks for a text of dbt alone."""
        return bool(HELP & set(self.arguments))

    @property
    def is_version(self) -> bool:
        """Whether it asks for the versions: dbt would look for newer ones in the network."""
        return self.command is None and bool(VERSION & set(self.arguments))

    @property
    def is_offline(self) -> bool:
        """Whether it is answered without a table."""
        return self.command not in WRITES | READS or (self.command == "docs" and "serve" in self.arguments)

    @property
    def writes(self) -> bool:
        """Whether it may change marts."""
        return self.command in WRITES

    @property
    def is_of_newest(self) -> bool:
        """Whether it asks the newest snapshot."""
        return self.command in OF_NEWEST

    @property
    def leaves_out_rows(self) -> bool:
        """Whether it makes tables that lack rows on purpose."""
        return self._has(LEAVE_OUT_ROWS)

    @property
    def makes_views(self) -> bool:
        """Whether dbt makes every view itself."""
        return self.command in {"build", "run"} and not self._has(CHOOSE)

    @property
    def of_parsing(self) -> list[str]:
        """Options that decide what the project is, with their values: other commands need them too."""
        found: list[str] = []
        for n, word in enumerate(self.arguments):
            if word.split("=")[0] in OF_PARSING:
                found += self.arguments[n : n + (1 if "=" in word else 2)]
        return found

    def check(self) -> None:
        """ConfError for options that the command does not have."""
        if self.command is not None:
            try:
                cli.commands[self.command].make_context(self.command, list(self.options))
            except click.UsageError as error:
                raise ConfError(f"dbt: {error.format_message()}") from None

    def _has(self, options: frozenset[str]) -> bool:
        return any(word.split("=")[0] in options for word in self.arguments)


def versions() -> str:
    """Of what is installed."""
    return "\n".join(f"{name} {version(name)}" for name in ("dbt-core", "dbt-spark"))


def invoked(arguments: Sequence[str]) -> dbtRunnerResult:
    """dbt's own answer; it has told on stdout what it did. ConfError for a command line that it does not understand."""
    answer = dbtRunner().invoke(list(arguments))
    if isinstance(answer.exception, KeyboardInterrupt):
        raise answer.exception
    if isinstance(answer.exception, DbtUsageException):
        raise ConfError(f"dbt: {answer.exception}")
    return answer


def exit_code(answer: dbtRunnerResult) -> int:
    """Ours for dbt's: 1 where models or tests failed, 2 where the project is wrong, 4 where dbt broke."""
    match answer.exception:
        case None:
            return DONE if answer.success else NO
        case DbtConfigError() | CompilationError() | ParsingError() | DbtValidationError() | InvalidSelectorError():
            return USAGE
        case _:
            return BROKE


def manifest_of(parsed: dbtRunnerResult) -> "Manifest | None":
    """The project as dbt has read it; None where it could not, and has told why."""
    return cast("Manifest", parsed.result) if parsed.success else None


def schemas(manifest: "Manifest") -> set[str]:
    """Of all that the project makes, what failed tests leave included."""
    return {node.schema for node in manifest.nodes.values() if node.schema}


def targets(manifest: "Manifest") -> dict[str, Target]:
    """Tables of the project by the id that dbt gives them; ConfError where one would not lie in the lake as a Delta table."""
    found, mistakes = {}, []
    for key, node in manifest.nodes.items():
        if node.resource_type in {"model", "snapshot", "seed"} and node.config.materialized not in KEPT_NOWHERE:
            found[key] = Target(f"{node.schema}.{node.alias}", str(node.resource_type), node.config.materialized == "incremental")
            mistakes += [f"{node.original_file_path}: {node.name} {mistake}" for mistake in _mistakes(node.schema, node.config)]
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return found


def made(answer: dbtRunnerResult) -> set[str]:
    """Ids of what a build has made without an error."""
    return {each.node.unique_id for each in getattr(answer.result, "results", ()) if each.status == "success"}


def _mistakes(schema: str, config: Any) -> Iterator[str]:
    if schema != SCHEMA:
        yield f"is a table in schema {schema}, but tables of the lake are in {SCHEMA}; remove `schema`, or make it a view"
    if config.get("file_format") != "delta":
        yield f"has file_format {config.get('file_format')}, but marts are Delta tables; write `file_format: delta`, or leave it out"
    if config.get("location_root"):
        yield "has a location_root, but marts lie in the lake; remove it"
