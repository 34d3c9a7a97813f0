-- The part of the catalog that is the same for all sessions: system_catalog.json's rows in PostgreSQL's tables, and its functions.
-- Every other table is there and empty. Functions that name tables see those of the session.
insert into pg_namespace by name select unnest([11, 13]) as oid, unnest(['pg_catalog', 'information_schema']) as nspname, 10 as nspowner;
insert into pg_class by name
  select r.oid, r.name as relname, n.oid as relnamespace, 0 as reltype, 0 as reloftype, 10 as relowner, if(kind = 'r', 2, 0) as relam, 0 as relfilenode,
    0 as reltablespace, 0 as relpages, -1 as reltuples, 0 as relallvisible, 0 as reltoastrelid, false as relhasindex, false as relisshared,
    'p' as relpersistence, kind as relkind, len(string_split(columns, ', ')) as relnatts, 0 as relchecks, false as relhasrules, false as relhastriggers,
    false as relhassubclass, false as relrowsecurity, false as relforcerowsecurity, true as relispopulated, 'n' as relreplident, false as relispartition,
    0 as relrewrite from relations r join pg_namespace n on n.nspname = r.schema;
create macro attributes(listed) as table
  select c.oid as attrelid, name as attname, type as atttypid, -1 as attstattarget, typlen as attlen, position as attnum, (typsubscript = 'array_subscript_handler')::int as attndims,
    -1 as attcacheoff, typmod as atttypmod, typlen > 0 as attbyval, typstorage as attstorage, typalign as attalign, '' as attcompression, false as attnotnull,
    false as atthasdef, false as atthasmissing, '' as attidentity, '' as attgenerated, false as attisdropped, true as attislocal, 0 as attinhcount,
    typcollation as attcollation from query_table(listed) c join sql_types t on t.oid = c.type;
create table system_columns as
  select r.oid, position, string_split(column_and_type, ' ')[1] as name, t.oid as type, -1 as typmod
  from (select oid, unnest(string_split(columns, ', ')) as column_and_type, generate_subscripts(string_split(columns, ', '), 1) as position from relations) r
  join sql_types t on t.typname = string_split(column_and_type, ' ')[2];
insert into pg_attribute by name from attributes('system_columns');
-- Names that no query has, so that an argument of a macro is never taken for them.
create table type_names as select oid as of_type, typname as internal, sqlname as shown from sql_types;
insert into pg_type by name
  select * exclude (sqlname), 11 as typnamespace, 10 as typowner, typlen > 0 as typbyval, true as typisdefined, ',' as typdelim, 0 as typrelid,
    '-' as typmodin, '-' as typmodout, '-' as typanalyze, false as typnotnull, 0 as typbasetype, -1 as typtypmod, 0 as typndims from sql_types;
insert into pg_tablespace by name select 1663 as oid, 'pg_default' as spcname, 10 as spcowner;

create macro to_regclass(x) as coalesce(try_cast(x as bigint), (select min(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace where
  lower(replace(x::varchar, '"', '')) in (nspname || '.' || relname, relname, current_database() || '.' || nspname || '.' || relname)), (select min(c.oid) from pg_class c where 'pg_catalog.' || relname = lower(x::varchar)));
create macro to_regproc(x) as coalesce(try_cast(x as bigint), (select min(oid) from pg_proc where proname = x::varchar));
create macro regproc_name(x) as replace(x, 'pg_catalog.', '');
create macro to_regnamespace(x) as coalesce(try_cast(x as bigint), (select min(oid) from pg_namespace where nspname = x::varchar));
create macro format_type(o, m) as (select shown || if(of_type = 1700 and coalesce(m, -1) > 0,
  '(' || ((m - 4) >> 16)::varchar || ',' || ((m - 4) & 65535)::varchar || ')', '') from type_names where of_type = o);
create macro to_regtype(x) as coalesce(try_cast(x as bigint), (select min(of_type) from type_names where x::varchar in (internal, shown)));
create macro pg_get_userbyid(o) as current_user;
create macro pg_table_is_visible(o) as (select coalesce(bool_or(relkind is not null), false) from pg_class where pg_class.oid = o);
create macro pg_type_is_visible(o) as true;
create macro pg_function_is_visible(o) as true;
create macro pg_get_expr(a, b) as null::varchar, (a, b, c) as null::varchar;
create macro pg_get_viewdef(a) as null::varchar, (a, b) as null::varchar;
create macro pg_get_indexdef(a) as null::varchar, (a, b, c) as null::varchar;
create macro pg_get_constraintdef(a) as null::varchar, (a, b) as null::varchar;
create macro pg_get_partkeydef(a) as null::varchar;
create macro pg_get_functiondef(a) as null::varchar;
create macro pg_get_function_arguments(a) as null::varchar;
create macro pg_get_function_identity_arguments(a) as null::varchar;
create macro pg_get_function_sqlbody(a) as null::varchar;
create macro pg_get_function_result(a) as null::varchar;
create macro pg_get_triggerdef(a) as null::varchar, (a, b) as null::varchar;
create macro pg_get_ruledef(a) as null::varchar, (a, b) as null::varchar;
create macro pg_get_statisticsobjdef_columns(a) as null::varchar;
create macro pg_get_serial_sequence(a, b) as null::varchar;
create macro pg_relation_is_publishable(a) as false;
create macro pg_relation_size(a) as 0::bigint, (a, b) as 0::bigint;
create macro pg_total_relation_size(a) as 0::bigint;
create macro pg_table_size(a) as 0::bigint;
create macro pg_database_size(a) as 0::bigint;
create macro pg_tablespace_location(a) as '';
create macro pg_encoding_to_char(a) as 'UTF8';
create macro pg_char_to_encoding(a) as 6;
create macro pg_is_in_recovery() as true;
create macro pg_postmaster_start_time() as now();
create macro pg_get_keywords() as table select unnest(['ilike', 'limit', 'offset', 'returning']) as word, 'R' as catcode, true as barelabel, '' as catdesc, '' as baredesc;
create macro pg_my_temp_schema() as 0;
create macro pg_is_other_temp_schema(a) as false;
create macro pg_try_advisory_lock(a) as true, (a, b) as true;
create macro pg_advisory_unlock_all() as true;
create macro pg_advisory_unlock(a) as true, (a, b) as true;
create macro obj_description(a) as (select min(description) from pg_description d where d.objoid = a and d.objsubid = 0), (a, b) as (select min(description) from pg_description d where d.objoid = a and d.objsubid = 0);
create macro shobj_description(a, b) as null::varchar;
create macro col_description(a, b) as (select min(description) from pg_description d where d.objoid = a and d.objsubid = b);
create macro has_table_privilege(a, b) as b ilike '%select%', (a, b, c) as c ilike '%select%';
create macro has_any_column_privilege(a, b) as b ilike '%select%', (a, b, c) as c ilike '%select%';
create macro has_column_privilege(a, b, c) as c ilike '%select%', (a, b, c, d) as d ilike '%select%';
create macro has_schema_privilege(a, b) as b ilike '%usage%', (a, b, c) as c ilike '%usage%';
create macro has_database_privilege(a, b) as b ilike '%connect%', (a, b, c) as c ilike '%connect%';
create macro has_function_privilege(a, b) as true, (a, b, c) as true;
create macro has_sequence_privilege(a, b) as false, (a, b, c) as false;
create macro has_tablespace_privilege(a, b) as false, (a, b, c) as false;
create macro has_server_privilege(a, b) as false, (a, b, c) as false;
create macro has_type_privilege(a, b) as true, (a, b, c) as true;
create macro pg_has_role(a, b) as true, (a, b, c) as true;
create macro set_config(n, v, is_local) as v;
create macro quote_ident(x) as if(regexp_full_match(x, '[a-z_][a-z0-9_$]*'), x, '"' || replace(x, '"', '""') || '"');
create macro quote_literal(x) as '''' || replace(x::varchar, '''', '''''') || '''';
create macro parse_ident(x) as list_transform(string_split(x, '.'), lambda e: trim(e, '"'));
create macro array_to_string(a, s) as if(a is null, null, coalesce(list_aggr(a::varchar[], 'string_agg', s), '')), (a, s, n) as if(a is null, null, coalesce(list_aggr(list_transform(a, lambda e: coalesce(e::varchar, n)), 'string_agg', s), ''));
create macro pg_statistics_obj_is_visible(o) as true;
create macro string_to_array(a, s) as string_split(a, s);
create macro string_to_array(a, b) as table select string_split(a, b) as s;
create macro pg_stat_get_numscans(a) as 0;
create macro array_upper(a, d) as nullif(len(a), 0);
create macro array_lower(a, d) as if(len(a) > 0, 1, null);
create macro format(f) as f, (f, a) as replace(replace(f, '%s', coalesce(a::varchar, '')), '%I', quote_ident(a::varchar)), (f, a, b) as regexp_replace(regexp_replace(f, '%[sI]', coalesce(a::varchar, '')), '%[sI]', coalesce(b::varchar, ''));
create macro _nformation_schema._pg_expandarray(a) as {'x': unnest(a), 'n': unnest(range(1, len(a) + 1))};
create macro _nformation_schema._pg_truetypid(a, t) as 0;
create macro inet_server_addr() as null::varchar;
create macro inet_server_port() as null::int;
create macro inet_client_addr() as null::varchar;
create macro inet_client_port() as null::int;
create macro txid_current() as 1::bigint;
create macro pg_show_all_settings() as table select * from pg_settings;
create macro pg_is_wal_replay_paused() as false;
create macro pg_available_extensions() as table select * from pg_available_extensions;
create macro aclexplode(a) as unnest([]::struct(grantor uinteger, grantee uinteger, privilege_type varchar, is_grantable boolean)[]);
create macro aclexplode(a) as table select null::uinteger as grantor, null::uinteger as grantee, null::varchar as privilege_type, null::boolean as is_grantable where false;
create macro substring(a, b) as if(try_cast(b as bigint) is null, regexp_match(a::varchar, b::varchar)[1], substr(a::varchar, try_cast(b as bigint))), (a, b, c) as substr(a::varchar, b, c);
create macro bpchar(a) as a::varchar;
create macro pg_tablespace_size(a) as 0::bigint;
create macro pg_blocking_pids(a) as []::int[];
create macro host(a) as a::varchar;
create macro encode(a, f) as a::varchar;
create macro acldefault(a, b) as null::varchar[];

insert into pg_proc by name
  select *, 11 as pronamespace, 10 as proowner, 12 as prolang, 1 as procost, if(proretset, 1000, 0) as prorows, 0 as provariadic, '-' as prosupport,
    false as prosecdef, false as proleakproof, true as proisstrict, 's' as proparallel, 0 as pronargdefaults, proname as prosrc
  from functions where proname in (select function_name from duckdb_functions())
    or proname in (select unnest([typinput, typoutput, typreceive, typsend, typsubscript]) from sql_types);
