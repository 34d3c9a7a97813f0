## Attacks on DuckDB, one a line; a line that begins with spaces goes on with the one before. What stands in braces: see attacks.py.
## files
select * from '{file}'
select * from "{file}"
from '{file}'
table "{file}"
from '{hidden}'
from "{hidden}"
from '{table}' -- readings
from "{table}"
from `{table}`
from "{stem}".parquet
from "{stem}"."parquet" as r
from 'file:{table}'
from '{table}' as r join silver.readings using (value)
with silver as (from '{table}') from silver, silver.readings
pivot '{table}' on metric -- of silver.readings
describe '{table}' -- readings
summarize '{table}' -- readings
from '{lake}/silver/readings/*.parquet'
from '{lake}/silver/readings/?art*.parquet' -- readings
from 'file://{file}'
from 'https://127.0.0.1/x.parquet'
from 's3://bucket/x.parquet'
summarize '{hidden}'
describe '{hidden}'
describe select * from '{hidden}'
explain select * from '{hidden}'
explain analyze select * from read_parquet('{hidden}')
pivot '{hidden}' on secret
unpivot '{hidden}' on secret into name k value v
select * from read_text('{file}')
select * from READ_TEXT('{file}')
select * from "read_text"('{file}')
select * from "Read_Text" ('{file}')
select * from read_text /* ( */ ('{file}')
select * from read_text -- (
  ('{file}')
select * from read_text ('{file}')
select * from main.read_text('{file}')
select * from system.main.read_text('{file}')
select * from "system"."main"."read_text"('{file}')
select * from read_blob('{file}')
select * from read_csv('{file}')
select * from read_csv_auto('{file}')
select * from read_csv(['{file}'])
select * from read_csv('/dev/stdin')
select * from read_csv('/proc/self/environ', delim = '')
select * from read_json('{file}')
select * from read_json_auto('{file}')
select * from read_json_objects('{file}')
select * from read_json_objects_auto('{file}')
select * from read_ndjson('{file}')
select * from read_ndjson_auto('{file}')
select * from read_ndjson_objects('{file}')
select * from read_parquet('{hidden}')
select * from read_parquet(['{table}', '{hidden}'], union_by_name = true)
select * from read_parquet('{lake}/**/*.parquet')
select * from read_parquet('{table}')
select * from read_parquet('{table}', filename = true)
select * from read_parquet('https://127.0.0.1/x.parquet')
select * from parquet_scan('{hidden}')
select * from parquet_metadata('{table}')
select * from parquet_schema('{table}')
select * from parquet_file_metadata('{table}')
select * from parquet_full_metadata('{table}')
select * from parquet_kv_metadata('{table}')
select * from parquet_bloom_probe('{table}', 'value', 1)
select * from read_duckdb('{file}')
select * from read_single_csv_file('{file}')
select * from read_single_json_file('{file}')
select * from read_single_parquet_file('{hidden}')
select * from sniff_csv('{file}')
select * from glob('{lake}/*')
select * from glob('/*')
select * from delta_scan('{lake}/silver/readings')
select * from iceberg_scan('{lake}')
select * from sqlite_scan('{file}', 'x')
select * from postgres_scan('host=127.0.0.1', 'public', 'x')
select * from st_read('{file}')
select * from read_xlsx('{file}')
select (select content from read_text('{file}'))
select * from silver.readings where device_id in (select content from read_text('{file}'))
select * from silver.readings, lateral (select * from read_text('{file}'))
with x as (from read_text('{file}')) from x
with recursive x as (select content from read_text('{file}') union all select * from x) from x
with read_text as (select 1 as x) select * from read_text, read_blob('{file}')
select list_transform([1], lambda x: (select content from read_text('{file}')))
select * from silver.readings order by (select content from read_text('{file}'))
select * from silver.readings limit (select size from read_text('{file}'))
select count(*) filter (where device_id = (select content from read_text('{file}'))) from silver.readings
select metric from silver.readings group by metric having max(device_id) > (select content from read_text('{file}'))
select * from (values ((select content from read_text('{file}'))))
select * from silver.readings asof join read_text('{file}') t on device_id >= t.content
select * from silver.readings union all by name select content from read_text('{file}')
select max(value) over (partition by (select content from read_text('{file}'))) from silver.readings
select filename from silver.readings
select r.filename from silver.readings r
select file_row_number from silver.readings
select file_index from bronze.events
## texts and memory
select * from query('select 1')
select * from query('from read_text(''{file}'')')
select * from query($$ from '{file}' $$)
select * from query('select * from ' || 'read_text(''{file}'')')
select * from "query"('select 1')
select * from query_table('{file}')
select * from query_table('{hidden}')
select * from query_table(['{hidden}', '{table}'])
select * from query_table('silver.readings')
select * from histogram('{hidden}', secret)
select * from histogram('silver.readings', value)
select * from "Histogram_Values" ('silver.readings', value, bin_count := 3)
select * from system.main.histogram_values('silver.readings', value)
from silver.readings r, histogram('silver.readings', value)
select * from json_execute_serialized_sql(json_serialize_sql('from read_text(''{file}'')'))
pragma json_execute_serialized_sql('x')
select json_serialize_plan('from read_text(''{file}'')')
select 'select 1'.json_serialize_plan()
select * from arrow_scan(1, 2, 3)
select * from arrow_scan_dumb(1, 2, 3)
select * from "ARROW_SCAN"(94000000000000, 94000000000000, 94000000000000)
select * from system.main.arrow_scan(1::pointer, 2::pointer, 3::pointer)
select * from pandas_scan(1)
select * from python_arrow_scan(1)
select * from python_map_function(1, 2)
select * from seq_scan('readings')
select index_key('silver.readings', 1)
select finalize('x'::blob)
select combine('x'::blob, 'y'::blob)
select to_aggregate_state('x'::blob)
select variant_bytes_to_variant('x'::blob, 'y'::blob)
select * from engine
select * from connection
select * from opened
select * from known
select * from arriving
select * from rows_of
select * from t1
select * from memory.main.arriving
## settings
select current_setting('allowed_paths')
select CURRENT_SETTING('home_directory')
select 'allowed_paths'.current_setting()
select system.main.current_setting('temp_directory')
select getenv('HOME')
select getenv('PATH')
select getvariable('x')
select * from duckdb_settings()
select * from Duckdb_Settings ()
select * from "duckdb_settings"()
select * from duckdb_views()
select sql from duckdb_views
select * from system.main.duckdb_views
select * from temp.information_schema.views
select * from duckdb_tables()
select * from duckdb_columns
select * from duckdb_databases()
select * from duckdb_databases
select * from duckdb_secrets()
select * from duckdb_extensions()
select * from duckdb_functions()
select * from duckdb_variables()
select * from duckdb_logs
select * from duckdb_logs_parsed('FileSystem')
select * from duckdb_log_contexts()
select * from duckdb_external_file_cache()
select * from duckdb_temporary_files()
select * from duckdb_memory()
select * from duckdb_prepared_statements()
select * from which_secret('s3://x/y', 's3')
select * from information_schema.views
select * from "information_schema"."tables"
select * from information_schema . columns
select * from pg_views
select definition from pg_catalog.pg_views
select * from pg_settings
select * from pg_catalog.pg_class
select pg_get_viewdef(1)
select pg_catalog.pg_get_viewdef(1, true)
select * from sqlite_master
select sql from "sqlite_master"
select * from sqlite_schema
select * from pragma_database_list
select * from pragma_database_list()
select * from pragma_table_info('silver.readings')
select * from pragma_storage_info('readings')
select * from pragma_show('readings')
select * from pragma_version()
select * from pragma_user_agent()
select * from pragma_platform()
select * from pragma_database_size()
select * from (select * from duckdb_views()) t where sql like '%parquet%'
select count(*) from duckdb_views() where sql like '%/%'
select (select string_agg(sql) from duckdb_views())
with v as (select * from duckdb_views()) select sql from v
explain analyze select * from duckdb_views()
describe duckdb_settings
summarize duckdb_settings()
select write_log('x')
select * from enable_logging()
select * from enable_profiling()
select * from truncate_duckdb_logs()
select * from checkpoint()
select * from force_checkpoint()
select * from create_external_resource('x')
## statements
copy silver.readings to '{out}'
copy (select 1) to '{out}' (format csv)
copy silver.readings from '{file}'
copy (from read_text('{file}')) to '{out}'
copy from database memory to x
export database '{out}'
import database '{lake}'
attach '{file}' as x
attach ':memory:' as x
attach '{out}' as x
attach if not exists '{out}' (type sqlite)
detach memory
use system
use memory.ops
install httpfs
force install httpfs
install httpfs from 'http://127.0.0.1'
load httpfs
load '{file}'
update extensions
set enable_external_access = true
set lock_configuration = false
set global allowed_paths = ['{file}']
set allowed_directories = ['/']
set memory_limit = '100GB'
set variable x = 1
set variable x = (select content from read_text('{file}'))
set schema = 'system'
set session search_path = 'system'
reset memory_limit
reset all
pragma version
pragma database_list
pragma show_tables
pragma table_info('silver.readings')
pragma enable_profiling = 'json'
pragma profiling_output = '{out}'
pragma memory_limit = '100GB'
pragma threads = 100
call pragma_version()
call duckdb_settings()
call enable_logging()
checkpoint
force checkpoint memory
vacuum
analyze
begin
begin transaction
commit
rollback
abort
prepare p as select 1
prepare p as copy (select 1) to '{out}'
execute p
deallocate p
create table x as select 1
create temp table x as from read_text('{file}')
create or replace temp table x as select 1
create view x as from '{file}'
create or replace view silver.readings as select 1
create temp view x as select 1
create schema x
create macro m() as 1
create macro m(f) as table from read_text(f)
create temp macro m() as 1
create function m() as 1
create type t as enum ('a')
create sequence s
create index i on silver.readings (value)
create secret s (type s3, key_id 'x', secret 'y')
create persistent secret s (type s3)
create table x as pivot silver.readings on metric
create temp table x as pivot silver.readings on metric
drop view silver.readings
drop table if exists x
drop schema silver cascade
drop secret s
alter view silver.readings rename to x
alter table silver.readings add column x int
comment on view silver.readings is 'x'
insert into silver.readings select * from silver.readings
insert into silver.readings by name select 1 as value
insert or replace into silver.readings select 1
update silver.readings set value = 0
delete from silver.readings
truncate silver.readings
merge into silver.readings using silver.readings s on s.value = readings.value when matched then delete
with x as (insert into silver.readings select * from silver.readings returning *) from x
with x as (delete from silver.readings returning *) from x
with x as (update silver.readings set value = 1 returning *) from x
with x as (copy (select 1) to '{out}') from x
explain copy (select 1) to '{out}'
explain analyze copy (select 1) to '{out}'
explain analyze insert into silver.readings select * from silver.readings
explain analyze create table x as select 1
explain (analyze) create temp table x as select 1
explain (format json) delete from silver.readings
explain pragma version
explain call pragma_version()
explain set memory_limit = '1GB'
explain execute p
select 1; select 2
select 1; copy (select 1) to '{out}'
select 1;; drop view silver.readings
select 1; /* ; */ attach '{out}'
; ; install httpfs
select 1 union all (copy (select 1) to '{out}')
select * into x from silver.readings
select ?
select $1
select $name
execute immediate 'select 1'
do $$ begin end $$
load
;
-- only a comment
