-- Grafana: version
select current_setting('server_version_num')::int / 100 as version;

-- Grafana: TimescaleDB, none
select extversion from pg_extension where extname = 'timescaledb';

-- Grafana: schemas of the builder
select quote_ident(schema_name) as "name" from information_schema.schemata
where schema_name not in ('information_schema', 'pg_catalog', 'pg_toast', '_timescaledb_cache', 'timescaledb_information') order by schema_name;

-- Grafana: tables of the builder, by the search path
select case when quote_ident(table_schema) in (
    select case when trim(part[n]) = '"$user"' then user else trim(part[n]) end
    from generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
      array_upper(string_to_array(current_setting('search_path'), ','), 1)) as n, string_to_array(current_setting('search_path'), ',') part)
  then quote_ident(table_name) else quote_ident(table_schema) || '.' || quote_ident(table_name) end as "table"
from information_schema.tables where quote_ident(table_schema) not in ('information_schema', 'pg_catalog') order by 1;

-- Grafana: columns of the builder
select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns
where case when array_length(parse_ident('gold.aggregates'), 1) = 2
  then quote_ident(table_schema) = (parse_ident('gold.aggregates'))[1] and quote_ident(table_name) = (parse_ident('gold.aggregates'))[2]
  else quote_ident(table_name) = 'gold.aggregates' end;

-- Grafana: a series of the builder
SELECT floor(extract(epoch from window_start)/60)*60 AS "time", AVG(value) AS "mean", device_id AS "metric" FROM gold.aggregates
WHERE window_start BETWEEN '2026-01-04T23:00:00Z' AND '2026-01-06T00:00:00.999Z' GROUP BY 1, 3 ORDER BY 1 LIMIT 1000;

-- Grafana: a table of the builder
SELECT "device_id", MAX("value") AS "aggregation" FROM gold.aggregates WHERE (metric = 'temperature' AND value > 0) GROUP BY "device_id" ORDER BY MAX("value") DESC LIMIT 50;

-- Metabase: time zone of a session
set session time zone 'Europe/Berlin'; show timezone;

-- Metabase: zone of the database
select current_setting('TIMEZONE') as timezone;

-- Metabase: enumerations, none
select nspname, typname from pg_type t join pg_namespace n on n.oid = t.typnamespace
where t.oid in (select distinct enumtypid from pg_enum e);

-- Metabase: tables with comments and sizes
select n.nspname as "schema", c.relname as "name", case c.relkind when 'r' then 'TABLE' when 'v' then 'VIEW' when 'm' then 'MATERIALIZED VIEW'
  else null end as "type", d.description as "description", s.n_live_tup as "estimated_row_count"
from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
left join pg_catalog.pg_description as d on c.oid = d.objoid and d.objsubid = 0 and d.classoid = 'pg_class'::regclass
left join pg_stat_user_tables as s on n.nspname = s.schemaname and c.relname = s.relname
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p', 'v', 'f', 'm') and n.nspname in ('gold', 'silver')
order by "type" asc, "schema" asc, "name" asc;

-- Metabase: rights of the user
with listed as (select table_schema as schema, table_name as "table", bool_or(privilege_type = 'SELECT') as "select",
    bool_or(privilege_type in ('INSERT', 'UPDATE', 'DELETE')) as "write"
  from information_schema.role_table_grants where grantee = current_user group by 1, 2)
select t.schemaname as schema, t.objectname as "table", pg_catalog.has_any_column_privilege(current_user, format('%I.%I', t.schemaname, t.objectname), 'select') as "select",
  pg_catalog.has_table_privilege(current_user, format('%I.%I', t.schemaname, t.objectname), 'insert') as "insert"
from (select schemaname, tablename as objectname from pg_catalog.pg_tables union select schemaname, viewname from pg_catalog.pg_views
  union select schemaname, matviewname from pg_catalog.pg_matviews) t
where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage');

-- Metabase: fields
select c.column_name as "name", case when c.udt_schema in ('public', 'pg_catalog') then format('%s', c.udt_name)
    else format('"%s"."%s"', c.udt_schema, c.udt_name) end as "database-type",
  c.ordinal_position - 1 as "database-position", c.table_schema as "table-schema", c.table_name as "table-name", pk.column_name is not null as "pk?",
  col_description(cast(cast(format('%I.%I', cast(c.table_schema as text), cast(c.table_name as text)) as regclass) as oid), c.ordinal_position) as "field-comment",
  (column_default is null or lower(column_default) = 'null') and is_nullable = 'NO' as "database-required"
from information_schema.columns as c left join (
  select tc.table_schema, tc.table_name, kc.column_name from information_schema.table_constraints as tc
  join information_schema.key_column_usage as kc on tc.constraint_name = kc.constraint_name and tc.table_schema = kc.table_schema
  where tc.constraint_type = 'PRIMARY KEY') as pk
on c.table_schema = pk.table_schema and c.table_name = pk.table_name and c.column_name = pk.column_name
where c.table_schema !~ '^information_schema|catalog_history|pg_' and c.table_schema in ('gold') order by "table-schema", "table-name", "database-position";

-- Metabase: foreign keys, none
select kn.nspname as "fk-table-schema", k.relname as "fk-table-name", ka.attname as "fk-column-name", p.relname as "pk-table-name"
from pg_constraint as c join pg_class as k on c.conrelid = k.oid join pg_namespace as kn on c.connamespace = kn.oid
join pg_attribute as ka on c.conrelid = ka.attrelid join pg_class as p on c.confrelid = p.oid
where kn.nspname !~ '^information_schema|catalog_history|pg_' and c.contype = 'f'::char and ka.attnum = any(c.conkey) order by 1, 2;

-- Metabase: indexes, none
select tmp.schema, tmp.name, trim(both '"' from pg_catalog.pg_get_indexdef(tmp.ci_oid, tmp.pos, false)) as "field-name"
from (select n.nspname as schema, ct.relname as name, ci.oid as ci_oid, (information_schema._pg_expandarray(i.indkey)).n as pos
  from pg_catalog.pg_class as ct join pg_catalog.pg_namespace as n on ct.relnamespace = n.oid join pg_catalog.pg_index as i on ct.oid = i.indrelid
  join pg_catalog.pg_class as ci on ci.oid = i.indexrelid where pg_catalog.pg_get_expr(i.indpred, i.indrelid) is null) as tmp where tmp.pos = 1;

-- Metabase: a question, by day in a zone
SELECT CAST(DATE_TRUNC('day', "gold"."aggregates"."window_start") AS date) AS "window_start", AVG("gold"."aggregates"."value") AS "avg", COUNT(*) AS "count"
FROM "gold"."aggregates" WHERE ("gold"."aggregates"."window_start" >= DATE_TRUNC('month', TIMESTAMP WITH TIME ZONE '2026-01-05 00:00:00Z'))
GROUP BY CAST(DATE_TRUNC('day', "gold"."aggregates"."window_start") AS date) ORDER BY CAST(DATE_TRUNC('day', "gold"."aggregates"."window_start") AS date) ASC;

-- Metabase: a week that starts on Sunday
SELECT (CAST(DATE_TRUNC('week', CAST((CAST("window_start" AS timestamp) + INTERVAL '1 day') AS timestamp)) AS timestamp) + INTERVAL '-1 day') AS "week", count(distinct "device_id") AS "count"
FROM "gold"."aggregates" GROUP BY 1 ORDER BY 1 ASC;

-- Metabase: bins, filters of texts
SELECT FLOOR(("value" / 10.0)) * 10.0 AS "value", COUNT(*) AS "count", SUM(CASE WHEN "value" > 20 THEN 1 ELSE 0.0 END) / COUNT(*) AS "share", PERCENTILE_CONT(0.5) within group (order by "value") AS "median"
FROM "gold"."aggregates" WHERE (LOWER("device_id") LIKE '%ov%') AND (("metric" <> 'power') OR ("metric" IS NULL)) GROUP BY FLOOR(("value" / 10.0)) * 10.0 ORDER BY 1;

-- Metabase: fingerprint of a table
SELECT SUBSTRING("device_id" FROM 1 FOR 1234) AS "a", "value" FROM "gold"."aggregates" LIMIT 10000;

-- DBeaver: start of a session
SET extra_float_digits = 3; SET application_name = 'DBeaver 25.1.0 - Main <tidemark>'; SELECT current_schema(), session_user;

-- DBeaver: the database
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate OR db.datname = current_database() ORDER BY db.datname;

-- DBeaver: settings
SELECT * FROM pg_catalog.pg_settings;

-- DBeaver: schemas
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname;

-- DBeaver: types
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');

-- DBeaver: relations of a schema
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'gold') AND c.relkind NOT IN ('i', 'I', 'c');

-- DBeaver: columns of a schema
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value, dsc.description, dep.objid
FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind not in ('i', 'I', 'c') AND c.relname = 'aggregates' ORDER BY a.attnum;

-- DBeaver: constraints of a table, none
SELECT c.oid, c.*, t.relname as tabrelname, rt.relnamespace as refnamespace, d.description, case when c.contype = 'c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass ORDER BY c.oid;

-- DBeaver: indexes of a schema, none
SELECT i.*, i.indkey as keys, c.relname, c.relnamespace, c.relam, tc.relname as tabrelname, dsc.description, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr
FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid WHERE c.relnamespace = 2200 ORDER BY tc.relname, c.relname;

-- DBeaver: size of a table
select pg_catalog.pg_total_relation_size(c.oid) as total_rel_size, pg_catalog.pg_relation_size(c.oid) as rel_size FROM pg_class c WHERE c.relname = 'aggregates';

-- DBeaver: roles
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid ORDER BY a.rolname;

-- DBeaver: rows of a table, with their number
SELECT t.* FROM gold.aggregates t WHERE "value" > 0 ORDER BY "window_start" DESC LIMIT 200 OFFSET 0;

-- Npgsql: types
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM (
  SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname,
    elemcls.relkind AS elemrelkind, CASE WHEN elemproc.proname = 'array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype
  FROM (SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid, CASE WHEN proc.proname = 'array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
      CASE WHEN proc.proname = 'array_recv' THEN typ.typelem WHEN typ.typtype = 'r' THEN rngsubtype
        WHEN typ.typtype = 'm' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid) WHEN typ.typtype = 'd' THEN typ.typbasetype END AS elemtypoid
    FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ
  LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive) AS t
JOIN pg_namespace AS ns ON (ns.oid = typnamespace)
WHERE typtype IN ('b', 'r', 'm', 'e', 'd') OR (typtype = 'c' AND relkind = 'c') OR (typtype = 'p' AND typname IN ('record', 'void')) OR (typtype = 'a' AND elemtyptype IN ('b', 'r', 'm', 'e', 'd'))
ORDER BY CASE WHEN typtype IN ('b', 'e', 'p') THEN 0 WHEN typtype = 'r' THEN 1 WHEN typtype = 'c' THEN 3 WHEN typtype = 'a' THEN 5 END;

-- Npgsql: composite types, none
SELECT typ.oid, att.attname, att.atttypid FROM pg_type AS typ JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace) JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid) WHERE (typ.typtype = 'c' AND cls.relkind = 'c') AND attnum > 0 AND NOT attisdropped ORDER BY typ.oid, att.attnum;

-- Npgsql: enumerations, none
SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid ORDER BY oid, enumsortorder;

-- Power BI: tables
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog') order by TABLE_SCHEMA, TABLE_NAME;

-- Power BI: columns
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE
from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'gold' and TABLE_NAME = 'aggregates' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION;

-- Power BI: keys, none
select ii.COLUMN_NAME, ii.ORDINAL_POSITION from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii
on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_NAME = ii.TABLE_NAME where i.TABLE_SCHEMA = 'gold' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE');

-- Power BI: a folded query
select "_"."device_id", "_"."a0" from (select "rows"."device_id" as "device_id", sum("rows"."value") as "a0" from (select "$Table"."device_id", "$Table"."value", "$Table"."window_start" from "gold"."aggregates" "$Table"
  where "$Table"."window_start" >= timestamptz '2026-01-05 00:00:00Z') "rows" group by "device_id") "_" where not "_"."a0" is null order by "_"."device_id" limit 1000001;

-- Power BI: the first rows
select "$Table"."device_id" as "device_id", "$Table"."window_start" as "window_start" from "gold"."aggregates" "$Table" limit 4096;

-- Tableau: start, a join on a custom query
SELECT CAST("Custom SQL Query"."device_id" AS TEXT) AS "device_id", (EXTRACT(YEAR FROM "Custom SQL Query"."window_start")) AS "yr", SUM(1) AS "sum:Number of Records:ok"
FROM (SELECT * FROM gold.aggregates) "Custom SQL Query" GROUP BY 1, 2 HAVING (COUNT(1) > 0);

-- DataGrip: states of the server
select current_database() as a, current_schemas(false) as b, pg_catalog.pg_is_in_recovery() as c, case when pg_catalog.txid_current() is null then 0 else 1 end as d, pg_catalog.pg_postmaster_start_time() as e;

-- DBeaver: sessions
SELECT sa.* FROM pg_catalog.pg_stat_activity sa;

-- pgAdmin: columns of the primary key, none
SELECT at.attname, at.attnum, ty.typname
FROM pg_catalog.pg_attribute at LEFT JOIN pg_catalog.pg_type ty ON (ty.oid = at.atttypid)
JOIN pg_catalog.pg_class as cl ON cl.oid=AT.attrelid
WHERE attrelid=16385::oid AND attnum = ANY ((SELECT con.conkey FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conrelid=rel.oid AND con.contype='p'
WHERE rel.relkind IN ('r','s','t', 'p') AND rel.oid = (16385)::oid)::oid[]);

-- pgjdbc: types that are arrays
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid FROM pg_catalog.pg_type ORDER BY pg_type.oid DESC;

-- pgAdmin: settings
SELECT st.name, st.setting FROM pg_catalog.pg_show_all_settings() st WHERE st.name = 'TimeZone' OR st.name = 'timezone';

-- psql user: the number of a table
SELECT relation FROM (SELECT 'silver.readings'::regclass::oid AS relation) t WHERE relation > 16383;

-- pgAdmin: an option of a table
SELECT 1 FROM pg_catalog.pg_am WHERE substring('fillfactor=70' FROM 'fillfactor=([0-9]*)') = '70' AND regexp_match('a1', '([a-z])([0-9])') = ARRAY['a', '1'];
