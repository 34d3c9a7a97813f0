"""Settings of a session: SET, RESET and SHOW, what a transaction takes back, and what the client is told of them."""

import zoneinfo
from collections.abc import Sequence

from orchestration.errors import TidemarkError
from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.watch import seconds_of
from orchestration.serving.postgres.wire import PostgresError, Wire, error, text
from orchestration.serving.sql.sql_words import Word
from orchestration.storage.snapshots import find_snapshot

REPORTED = {
    name.lower(): name
    for name in (
        *("server_version", "server_encoding", "client_encoding", "DateStyle", "TimeZone", "integer_datetimes", "IntervalStyle"),
        *("standard_conforming_strings", "application_name", "is_superuser", "session_authorization", "search_path"),
        *("default_transaction_read_only", "in_hot_standby"),
    )
}
"""Settings that the client is told when they change, as PostgreSQL spells them."""
DEFAULTS = {
    "server_version": "15.0",
    "server_version_num": "150000",
    "version": "PostgreSQL 15.0 (Tidemark, DuckDB)",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_monetary": "C",
    "datestyle": "ISO, MDY",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "integer_datetimes": "on",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "application_name": "",
    "is_superuser": "off",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "in_hot_standby": "off",
    "row_security": "on",
    "transaction_isolation": "repeatable read",
    "default_transaction_isolation": "repeatable read",
    "tidemark.snapshot": "",
    "search_path": "gold, silver, marts, bronze, ops, quality",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "jit": "off",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "client_min_messages": "notice",
    "ssl": "on",
}
FIXED = {"server_version", "server_version_num", "server_encoding", "is_superuser", "session_authorization", "integer_datetimes", "version"}
PHRASES = {
    "timezone": "timezone",
    "transactionisolationlevel": "transaction_isolation",
    "sessionauthorization": "session_authorization",
    "names": "client_encoding",
}


class Settings:
    """Values by lower name. In force are TimeZone, search_path, statement_timeout, application_name and tidemark.snapshot."""

    def __init__(self, wire: Wire, databases: Databases, values: dict[str, str]) -> None:
        self.values, self._wire, self._databases = values, wire, databases
        self._initial: dict[str, str] | None = None
        self._before: dict[str, str] | None = None
        self._locals = dict[str, str]()

    def start(self) -> None:
        """Tell the client all that it is told. RESET goes back to what is set now."""
        self._initial = dict(self.values)
        for name in REPORTED:
            self._report(name)

    def begin(self) -> None:
        """Keep what is set now, if no transaction has begun."""
        if self._before is None:
            self._before = dict(self.values)

    def end(self, is_committed: bool) -> None:
        """End a transaction: SET LOCAL is over, and what an aborted one has set is undone."""
        before, self._before = self._before, None
        outer, self._locals = self._locals if is_committed else before or {}, {}
        for name in [name for name in self.values if before is not None and name not in before and not is_committed]:
            del self.values[name]
        for name, value in outer.items():
            self._put(name, value)

    def change(self, name: str, value: str) -> None:
        """Set a value. PostgresError for one that it cannot have."""
        if name in FIXED:
            raise PostgresError("55P02", f'parameter "{name}" cannot be changed')
        if name == "client_encoding" and value.strip("'").lower().replace("-", "") not in {"utf8", "unicode"}:
            raise PostgresError("22023", f'invalid value for parameter "client_encoding": "{value}"', "Texts are UTF8.")
        if name == "timezone":
            value = _zone(value)
        if name == "statement_timeout" and value != "0" and seconds_of(value) == float("inf"):
            raise PostgresError("22023", f'invalid value for parameter "statement_timeout": "{value}"', "Give milliseconds, or 10s, 1min.")
        if name == "tidemark.snapshot":
            self._check_snapshot(value)
        self._put(name, value)

    def set(self, words: Sequence[Word], is_in_transaction: bool) -> None:
        """SET [LOCAL] name = value; `words` are those after SET."""
        scope = words[0].name.lower() if len(words) > 1 and words[1].text not in {"=", "."} and words[1].name.lower() != "to" else ""
        words = words[1:] if scope in {"session", "local"} else words
        if words and words[0].name.lower() in {"transaction", "characteristics"}:
            return None
        name, value = self._assignment(words)
        if scope == "local":
            if not is_in_transaction:
                warning = PostgresError("25P01", "SET LOCAL can only be used in transaction blocks")
                return self._wire.write("N", error(warning, "WARNING"))
            before = self.values.get(name, "")
            self.change(name, self._default(name) if value is None else value)
            self._locals.setdefault(name, before)
            return None
        self.change(name, self._default(name) if value is None else value)
        self._locals.pop(name, None)
        return None

    def reset(self, words: Sequence[Word]) -> None:
        """RESET name, or ALL."""
        name = _joined(words)
        for changed in [*self.values] if name == "all" else [name]:
            if changed not in FIXED and self.values.get(changed) != (value := self._default(changed)):
                self.change(changed, value)

    def shown(self, words: Sequence[Word]) -> dict[str, list[str]]:
        """Return what SHOW answers, by column."""
        name = _joined(words)
        if name == "all":
            return {"name": [*self.values], "setting": [*self.values.values()], "description": [""] * len(self.values)}
        if name not in self.values:
            raise PostgresError("42704", f'unrecognized configuration parameter "{name}"')
        value = self.values[name]
        if name == "tidemark.snapshot" and (self._databases.pinned or not value):
            snapshot = self._databases.pinned or find_snapshot(self._databases.plant.lake)
            value = str(snapshot.snapshot_id) if snapshot else ""
        return {REPORTED.get(name, name): [value]}

    def _assignment(self, words: Sequence[Word]) -> tuple[str, str | None]:
        """Read a name and its value; None stands for the default."""
        names = [word.name.lower() for word in words]
        if names[:2] == ["time", "zone"]:
            name, value = "timezone", words[2:]
        elif names[:1] == ["names"]:
            name, value = "client_encoding", words[1:]
        else:
            end = next((n for n, word in enumerate(words) if word.text == "=" or word.name.lower() == "to"), len(words))
            name, value = _joined(words[:end]), words[end + 1 :]
        if not name or not value:
            raise PostgresError("42601", "SET takes a name and a value", "Write SET name = value.")
        if value[0].name.lower() in {"default", "local"} and len(value) == 1:
            return name, None
        if value[0].name.lower() == "interval":
            raise PostgresError("0A000", "a time zone is a name here, not an interval", "Write SET TIME ZONE 'Europe/Berlin'.")
        return name, "".join(_value(word, name) for word in value)

    def _check_snapshot(self, value: str) -> None:
        if self._databases.pinned:
            raise PostgresError("25001", "tidemark.snapshot must be set before any query of a transaction")
        if value and not (value.isascii() and value.isdigit()):
            raise PostgresError("22023", f'invalid value for parameter "tidemark.snapshot": "{value}"', "Give the id of a snapshot.")
        try:
            find_snapshot(self._databases.plant.lake, int(value) if value else None)
        except (TidemarkError, ValueError, OverflowError) as problem:
            raise PostgresError("22023", str(problem), "select snapshot_id from ops.snapshots lists them.") from None

    def _default(self, name: str) -> str:
        return (self._initial or DEFAULTS).get(name, "")

    def _put(self, name: str, value: str) -> None:
        is_new = self.values.get(name) != value
        self.values[name] = value
        if is_new and self._initial is not None:
            self._report(name)

    def _report(self, name: str) -> None:
        if name in REPORTED:
            self._wire.write("S", text(REPORTED[name]) + text(self.values.get(name, "")))


def _zone(value: str) -> str:
    """Return the name of a time zone, in any case, as the IANA database spells it."""
    for name in (value, *(zone for zone in zoneinfo.available_timezones() if zone.lower() == value.lower())):
        try:
            zoneinfo.ZoneInfo(name)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            continue
        return name
    raise PostgresError("22023", f'invalid value for parameter "TimeZone": "{value}"', "Give a name such as Europe/Berlin.")


def _joined(words: Sequence[Word]) -> str:
    name = "".join(word.name.lower() or word.text for word in words)
    return PHRASES.get(name, name)


def _value(word: Word, name: str) -> str:
    if word.kind == "string_const":
        return word.text[1:-1].replace("''", "'")
    if word.text == ",":
        return ", "
    return word.text if name == "search_path" or not word.name else word.name
