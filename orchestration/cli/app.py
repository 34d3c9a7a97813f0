"""The command `tidemark`: loads only the command that was asked for, and turns whatever goes wrong into one sentence and an exit code.

Exit codes: 0 yes or done; 1 the answer is no; 2 wrong usage or conf; 3 someone else holds the lake; 4 it broke; 130 interrupted.
A command returns its exit code; None is 0.
"""

import importlib
import os
import select
import sys
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from orchestration.cli.option_types import PATH
from orchestration.rendering import show_error
from orchestration.service import child

STDOUT, STDERR = 1, 2
INTERRUPTED = 130
WITHOUT = {"preview": {"pandas"}, "sql": {"pandas", "numpy"}}
"""Commands that answer at once, and what they do without: pyarrow loads both where it finds them, which takes 0.1 and 0.3 s."""

# One line each, so that `tidemark --help` imports none of them. Each is `command` in the module of its name.
COMMANDS = {
    "init": "Write a starter conf, or propose one from a sample of your data.",
    "check": "Find every mistake of a conf, without starting Spark.",
    "test": "Run the tests of a conf: messages, and what must come of them; in a second.",
    "preview": "Show how a file or a source would be read, in a second; nothing is written.",
    "simulate": "Write events of simulated devices into a folder.",
    "up": "Run everything that conf asks for, and keep it running.",
    "down": "End what `up` runs.",
    "logs": "Show the journal of `up` and its parts.",
    "doctor": "Check the machine, the conf, the lake, sources and sinks; name the command that fixes a problem.",
    "serve": "Serve the live page: the state of the pipeline.",
    "run": "Bring events through bronze, silver and gold, once or for ever.",
    "collect": "Take events over HTTP, TCP, MQTT and Kinesis, and keep them until a run reads them.",
    "backfill": "Bring older messages of a Kafka source to bronze.",
    "status": "Say how far each source and flow is: up or down, rows, last batch, watermark, lag.",
    "sinks": "Show how far each sink has come; send everything to a sink again.",
    "ledger": "Account for every event: where each measurement is, and whether any is lost.",
    "evaluate": "Judge labelled series by the detectors of anomalies, and count what they find.",
    "train": "Train a model of anomalies on the vectors of a group.",
    "models": "List the models of anomalies; put one in force, or the one before it.",
    "verify": "Recompute silver and gold from bronze, and compare every row.",
    "replay": "Build the next generation of silver and gold from bronze, and switch to it.",
    "generations": "List the generations of silver and gold, and which one is active.",
    "rollback": "Switch back to an earlier generation.",
    "quarantine": "List measurements that break a rule; apply the rules again.",
    "lake": "Copy the lake to another place: a folder, or an object store.",
    "maintain": "Compact small files, and remove files that no snapshot needs.",
    "sql": "Answer a query over the tables.",
    "sql-server": "Serve the lake to every client of PostgreSQL.",
    "dbt": "Build, test and document the marts.",
    "quality": "Check the tables against their expectations, and write a report.",
    "alerts": "List, acknowledge and silence firing alerts; test an alert on the data of the lake.",
    "plot": "Draw the vectors of a device group over time.",
    "devices": "Load and list the device registry.",
}


class Without:
    """Finds none of these modules, so that pyarrow does without them. No MetaPathFinder: that is another 0.03 s to import."""

    def __init__(self, modules: Collection[str]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in self._modules:
            raise ModuleNotFoundError(fullname)


class LazyCommands(click.Group):
    """Commands by name; a module is imported when its command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"orchestration.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 140})
@click.option("--conf", type=PATH, default=Path("conf"), show_default="./conf", help="The conf folder.")
@click.option("--debug", is_flag=True, help="Show the trace when something breaks.")
@click.version_option(package_name="tidemark", message="%(prog)s %(version)s")
@click.pass_obj
def tidemark(obj: dict[str, Any], conf: Path, debug: bool) -> None:
    """Raw device events become silver readings and gold vectors.

    \b
    Example:
      tidemark init conf && tidemark simulate --to landing && tidemark run --once && tidemark status
    """
    obj.update(conf=conf, debug=debug)


def main() -> None:
    """Entry point: run the command line and leave with its exit code."""
    child.begin()
    command = next((argument for argument in sys.argv[1:] if argument in COMMANDS), "")
    if command in WITHOUT and not {"spark", "--engine=spark"} & {*sys.argv}:
        sys.meta_path.insert(0, Without(WITHOUT[command]))
    try:
        code = exit_code(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our stdout has seen enough, as in `tidemark sql ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)  # or the flush at the end would complain
        code = 0
    if command in WITHOUT:
        sys.stderr.flush()
        os._exit(code)  # who answers at once leaves at once, whatever libraries still hold
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDERR)  # DuckDB lists what it still holds when Python ends
    sys.exit(code)


def exit_code(arguments: Sequence[str]) -> int:
    """Run one command line; errors are shown on stderr, all but a closed stdout."""
    obj: dict[str, Any] = {"debug": False}
    try:
        with tidemark.make_context("tidemark", list(arguments), obj=obj) as context:
            return int(tidemark.invoke(context) or 0)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and not is_stdout_open():
            raise
        if obj["debug"]:
            traceback.print_exc()
        child.tell(error)
        return show_error(error)


def is_stdout_open() -> bool:
    """Whether anybody still reads what is printed; another pipe may have broken instead, such as that to the JVM."""
    stdout = select.poll()
    stdout.register(STDOUT, 0)  # asked for no event at all, it still reports an end that is gone
    return not stdout.poll(0)


if __name__ == "__main__":
    main()
