"""What section `dbt` of pipeline.yml means: a folder that dbt would take for a project."""

from collections.abc import Iterator
from pathlib import Path

from orchestration.conf.diagnostic import quoted
from orchestration.conf.place import absolute
from orchestration.conf.structure import Finding

AT = ("dbt", "project")


def check_dbt(folder: Path, project: str | None) -> Iterator[Finding]:
    """`project` is None where none is set."""
    if project is None:
        return
    try:
        path = absolute(folder, project)
    except ValueError as error:
        yield Finding(AT, f"dbt.project {error}")
        return
    if not (path / "dbt_project.yml").is_file():
        text = f"dbt.project is {quoted(project)}, where no dbt_project.yml lies; name the folder of a dbt project, or leave it out"
        yield Finding(AT, text)
