"""The rows of Delta tables without deletion vectors in DuckDB's SQL, from their files."""

import re
from collections.abc import Iterable, Mapping, Sequence

from orchestration.storage.delta import literal

NULL_PART = "__HIVE_DEFAULT_PARTITION__"


def select_from_files(files: Iterable[str], types: Mapping[str, str], partitions: Sequence[str]) -> str:
    """A SELECT of these columns; null where a file lacks one, as files that are older than the column do.

    `types`: DuckDB's, by column; what they leave out comes as the files have it. `partitions`: columns in the paths of files.
    """
    listed = ", ".join(map(literal, files))
    nulls = ", ".join(f"cast(null as {kind}) as {quoted(column)}" for column, kind in types.items())
    # DuckDB's hive_partitioning would take every folder above the lake for a partition (`source=plant/lake`), and its value for that of
    # the column in the file; and it guesses types.
    parts = "".join(f", cast({_part(column)} as {types[column]}) as {quoted(column)}" for column in partitions)
    # Parquet statistics leave NaN out. By default DuckDB trusts them, and a filter on NaN would find nothing.
    how = "union_by_name = true, hive_partitioning = false, can_have_nan = true, filename = 'of_file'"
    rows = f" union all by name select * exclude (of_file){parts} from read_parquet([{listed}], {how})" if listed else ""
    return f"select {nulls} where false{rows}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _part(column: str) -> str:
    # The last folder of that name is the table's own; one above the lake may have it too.
    found = f"regexp_extract(of_file, {literal(f'.*/{re.escape(column)}=([^/]*)/')}, 1)"
    return f"nullif(url_decode({found}), '{NULL_PART}')"
