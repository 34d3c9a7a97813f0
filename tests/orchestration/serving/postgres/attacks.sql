## Attacks on the sql-server in PostgreSQL's own words, one a line, as in ../sql/attacks.sql.
## PostgreSQL's ways to files, programs and other servers
select pg_read_file('{file}')
select pg_catalog.pg_read_file('{file}')
select "pg_catalog"."pg_read_file"('{file}')
select pg_read_binary_file('{file}'), pg_stat_file('{file}')
select pg_ls_dir('{lake}')
select * from pg_ls_dir('{lake}') as t
select * from pg_ls_logdir(), pg_ls_waldir(), pg_ls_tmpdir()
select pg_current_logfile()
select lo_import('{file}')
select lo_export(1, '{out}')
select lo_get(lo_from_bytea(0, 'x'))
copy (select 1) to program 'cat > {out}'
copy pg_class to program 'cat > {out}'
copy pg_class from '{file}'
copy pg_class to '{out}'
copy (select content from read_text('{file}')) to stdout
copy (select * from '{hidden}') to stdout
copy "{hidden}" to stdout
copy '{hidden}' to stdout
copy silver.readings (secret) to stdout
copy "silver.readings (value) from '{hidden}' --" to stdout
copy silver.readings(value) from '{hidden}' to stdout
copy silver.readings(value from '{hidden}' union all select value) to stdout
copy silver.readings, read_text('{file}') to stdout
copy (select 1) to stdout; copy (select 1) to '{out}'
copy (select 1) to stdout (format csv, header '{file}')
copy (select 1) to '{out}' (format csv) -- to stdout
copy (copy (select 1) to '{out}') to stdout
copy (select 1) to stdout with (format parquet)
select * from dblink('host=127.0.0.1', 'select 1') as t(a int)
select * from postgres_query('host=127.0.0.1', 'select 1')
select * from pg_read_server_files
create extension dblink
create foreign table t (a text) server s options (filename '{file}')
load 'plpgsql'
do $$ copy (select 1) to '{out}' $$
## in the clothes of the catalog
select * from pg_class, read_text('{file}')
select * from pg_class c, '{hidden}' t
select * from pg_class c, "{hidden}" t
select * from pg_class c, "{stem}".parquet t
select * from pg_catalog.read_text('{file}')
select * from pg_catalog.pg_class union all select * from read_csv('{file}')
select *, (select content from read_text('{file}')) from pg_namespace
select * from pg_catalog.duckdb_settings()
select * from pg_class, duckdb_settings()
select * from pg_class, duckdb_secrets(), duckdb_extensions()
select * from pg_class, "duckdb_settings"()
select * from pg_class, duckdb_logs
select * from pg_class, system.main.duckdb_views
select * from pg_class, sqlite_master
select * from pg_class, pragma_database_list
select current_setting('allowed_paths'), current_setting('temp_directory') from pg_class
select pg_catalog.current_setting('home_directory')
select system.main.current_setting('home_directory') from pg_class
select "current_setting"('secret_directory') from pg_class
select getenv('SECRET') from pg_class
select pg_catalog.getenv('SECRET')
select 'SECRET'.getenv() from pg_class
select * from pg_class, query('select 1')
select * from pg_class, query_table('{hidden}')
select * from pg_class, glob('{lake}/*')
select * from information_schema.tables, glob('/*')
select * from information_schema.read_text('{file}')
select * from _nformation_schema.columns, read_blob('{file}')
select pg_get_viewdef('silver.readings'::regclass)
select pg_get_viewdef(oid) from pg_class
select definition from pg_views
select view_definition from information_schema.views
select sql from duckdb_views() where 'pg_class' = 'pg_class'
select * from pg_settings where setting like '%/%'
select * from pg_stat_file('{file}')
select * from pg_file_settings
select * from pg_hba_file_rules
select rolpassword, * from pg_authid
select passwd from pg_shadow
select current_setting('data_directory'), current_setting('config_file'), current_setting('hba_file')
show data_directory
show all
select * from pg_config
select * from pg_config()
select inet_server_addr(), pg_postmaster_start_time(), pg_conf_load_time()
update pg_settings set setting = '{file}'
insert into pg_class select * from pg_class
delete from pg_catalog.pg_class
drop table pg_class
create table pg_catalog.x as select content from read_text('{file}')
create macro pg_x() as table from read_text('{file}')
attach '{out}' as pg_x
attach '{out}' as pg_class
pragma pg_class
call pg_class()
install pg_x from 'http://127.0.0.1'
explain analyze insert into pg_class select * from pg_class
explain (analyze, format json) copy pg_class to '{out}'
explain (analyze, buffers, format text) select * from '{hidden}'
explain (analyze (select content from read_text('{file}'))) select 1
explain explain analyze copy (select 1) to '{out}'
explain (format json) explain (analyze) select * from read_text('{file}')
## rewrites: casts, OPERATOR, COLLATE, sets, procedures
select '{file}'::regclass
select (select content from read_text('{file}'))::regclass
select ('x'') from read_text(''{file}'') --')::regclass from pg_class
select 'x'')), (select content from read_text(''{file}''))::text --'::regclass from pg_class
select cast((select content from read_text('{file}')) as regclass) from pg_class
select '{file}'::regproc, '{file}'::regtype, '{file}'::regnamespace from pg_class
select 1 operator(pg_catalog.+) (select content from read_text('{file}')) from pg_class
select 1 operator(; attach '{out}' as x ;) 1 from pg_class
select 1 operator(pg_catalog.from read_text) ('{file}') from pg_class
select 1 operator(from) read_text('{file}') from pg_class
select 'x' collate "x) from read_text('{file}') --" from pg_class
select 'x' collate read_text('{file}') from pg_class
select * from pg_class where oid = any('{1); attach '''{out}''' as x; --}')
select * from pg_class where relname = any('{"x'' union all select content from read_text(''{file}'') --"}')
select '{"x''), (select content from read_text(''{file}'')) --"}'::text[] from pg_class
select * from generate_series(1, 2) "x) as t, read_text('{file}')"
select * from pg_class, unnest(array['x']) "read_text('{file}')"
select typinput = 'x' from pg_type, pg_proc where typinput = (select content from read_text('{file}'))
select json_build_object('x', (select content from read_text('{file}')))
select to_jsonb(x) from pg_class, read_text('{file}') x
select * from pg_catalog."read_text"('{file}')
select * from "pg_catalog".  /* x */ read_text('{file}'), pg_class
select pg_catalog.pg_catalog.read_text('{file}')
select pg_catalog . pg_read_file /**/ ('{file}')
## the session
set search_path = 'main'; select * from duckdb_settings()
set search_path = "system.main, pg_catalog"; select sql from duckdb_views
set search_path = 'x\'')); attach ''{out}'' as x; --"'; select * from pg_class
set search_path = 'x\''] || (select content from read_text(''{file}'')) --"'; select current_schemas(true) from pg_class
set search_path = 'x''); attach ''{out}'' as x; --'; select * from silver.readings
set search_path = 'x'' ]; create table pg.pg_x as select content from read_text($${file}$$); -- "x'; select * from pg_x
set timezone = '{file}'
set timezone = '../../../../{file}'; show timezone
set timezone = 'UTC''; attach ''{out}'' as x; --'; select now()
set "tidemark.snapshot" = '0; attach'
set tidemark.snapshot = '../0'
set application_name = 'x''}; attach ''{out}'' as x; --'; select current_setting('application_name') from pg_class
set "x'' : '', attach ''{out}''" = 1; select * from pg_settings
set session authorization bob; select current_user
set role bob; select current_user
set allowed_paths = '{file}'; select * from '{file}'
set enable_external_access = on; select * from read_text('{file}')
set session characteristics as transaction read write; create table x as select 1
set transaction read write; copy (select 1) to '{out}'
begin read write; create table x as select 1
select set_config('search_path', 'system', false); select * from duckdb_settings()
select set_config('enable_external_access', 'true', false)
select pg_catalog.set_config('allowed_paths', '{file}', false) from pg_class
alter system set allowed_paths = '{file}'
prepare x as select content from read_text('{file}'); execute x
prepare x (text) as select * from read_text($1); execute x('{file}')
declare x cursor with hold for select content from read_text('{file}'); fetch all from x
declare x cursor with hold for copy (select 1) to '{out}'; fetch all from x
declare x cursor for attach '{out}' as x
fetch all from "read_text('{file}')"
close "'; attach '{out}' as x; --"
move forward all in x; copy (select 1) to '{out}'
listen x; notify x, '{file}'
lock table silver.readings
select pg_reload_conf(), pg_rotate_logfile(), pg_terminate_backend(1), pg_cancel_backend(1)
select pg_terminate_backend(pid) from pg_stat_activity
select pg_cancel_backend(1), pg_advisory_lock(1)
vacuum full pg_class
reindex database plant
create publication p for all tables
create role x superuser password 'x'
grant all on all tables in schema silver to public
security label on table silver.readings is 'x'
## spaces, comments and quotes
select * from read_text/* */('{file}')
select * from read_text('{file}')
select * from read_text ('{file}')
select​* from read_text('{file}')
select * from ｒｅａｄ_text('{file}')
select * from read_text
  ('{file}')
select * from U&"read\005ftext"('{file}')
select * from e'{file}'
select * from E'{hidden}'
select * from $${hidden}$$
select * from $a${hidden}$a$ as t
select * from x'2f'
select*from"read_text"('{file}')--pg_class
select /* /* pg_class */ */ content from read_text('{file}')
select content from -- pg_class
  read_text('{file}')
select $1::text from read_text($2)
select * from ONLY ('{hidden}')
table "{hidden}"
values ((select content from read_text('{file}')))
select * from rows from (read_text('{file}'))
select * from lateral read_text('{file}') with ordinality
select (read_text('{file}')).content
select * from silver.readings tablesample system (10), '{hidden}'
