"""Writes system_catalog.json: tables, views, types and functions of pg_catalog and information_schema as a PostgreSQL 15 has them.

`make system-catalog` runs it, with the server of Debian's package.
"""

import json

import psycopg

from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.orchestration.serving.postgres.served import REPOSITORY

FILE = REPOSITORY / "orchestration/serving/postgres/system_catalog.json"
RELATIONS = """
select n.nspname::text as schema, c.relname::text as name, c.oid::int8, c.relkind::text as kind, string_agg(a.attname::text || ' ' ||
  coalesce((select b.typname from pg_type b where b.oid = nullif(t.typbasetype, 0)), t.typname)::text, ', ' order by a.attnum) as columns
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
join pg_type t on t.oid = a.atttypid
where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v') group by 1, 2, 3, 4 order by 1, 2
"""
ROWS = {
    "pg_type": """
      select oid::int8, typname::text, typlen, typtype::text, typcategory::text, typispreferred, typelem::int8, typarray::int8,
        typinput::text, typoutput::text, typreceive::text, typsend::text, typsubscript::text, typalign::text, typstorage::text,
        typcollation::int8, format_type(oid, null) as sqlname
      from pg_type where typrelid = 0 and typtype <> 'd' and typname not like '\\_pg\\_%' and oid < 10000
        and not exists (select from pg_type e where e.oid = pg_type.typelem and e.typrelid <> 0) order by oid""",
    "pg_proc": """
      select oid::int8, proname::text, prokind::text, provolatile::text, proretset, pronargs, prorettype::int8,
        string_to_array(proargtypes::text, ' ')::int8[] as proargtypes
      from pg_proc where oid < 10000 and pronamespace = 'pg_catalog'::regnamespace order by oid""",
    "pg_am": "select oid::int8, amname::text, amhandler::text, amtype::text from pg_am order by oid",
    "pg_language": "select oid::int8, lanname::text, 10 as lanowner, lanpltrusted from pg_language where oid < 10000 order by oid",
    "pg_cast": """
      select oid::int8, castsource::int8, casttarget::int8, castfunc::int8, castcontext::text, castmethod::text
      from pg_cast order by oid""",
    "pg_collation": """
      select oid::int8, collname::text, 11 as collnamespace, 10 as collowner, collprovider::text, collisdeterministic, collencoding,
        collcollate, collctype from pg_collation where oid in (100, 950, 951) order by oid""",
}
"""Rows that are the same in each PostgreSQL 15."""


def system_catalog(server: PostgresServer) -> str:
    """Return the content of the file, as a running server has it: by table the names of its columns, then its rows."""
    tables = []
    with psycopg.connect(server.dsn) as connection:
        for table, query in {"relations": RELATIONS, **ROWS}.items():
            cursor = connection.execute(query)
            rows = [[column.name for column in cursor.description or ()], *cursor]
            lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
            tables.append(f'"{table}": [\n{lines}]')
    return "{" + ",\n".join(tables) + "}\n"


if __name__ == "__main__":
    with PostgresServer().running() as server:
        FILE.write_text(system_catalog(server))
