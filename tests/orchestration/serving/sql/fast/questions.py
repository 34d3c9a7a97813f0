# ruff: noqa: E501
"""What is asked of both engines: expressions over the rows of `ops.edges`, queries, and what the fast engine must refuse."""

EXPRESSIONS = r"""
i + l; i + 1; l + m; l - m; i - l; i * m; i * i; l * 2; i / m; l / 3; d / 2; d / (e * e + 1); i % 3; l % m; i % -3; d % 2; e % 1.5; i div 2; l div m; -i; -l; -d
+i; - -i; i + 1.5; d * 1.5; d + i; d - l; 1.5 + 1; 1.5 * 2.25; 1.5 - 1L; 2 * 3.0; -7 div 2; -7 % 3; 7 % -3; 1 - -1; -2 * 3; 2 - 1 - 1; 8 / 2 / 2
7 % 4 * 2; 1 + 2 * 3; (1 + 2) * 3; try_divide(i, m); try_divide(d, e); mod(l, 2); pmod(l, 3); pmod(-7, 3)
d > 1; d >= 1.5; d < e; d <= e; d > e; d = e; d <> e; d != e; d == e; d <=> e; d = 0; d >= 0; d > 0; d < 0; i = l; i < d; i <=> 7; i is distinct from 7
i is not distinct from l; d is distinct from e; s = 'Oven'; s < 'a'; s >= r; s <=> r; b = b; b < b; y = t; t > u; t >= '2026-01-05'
t < '2026-01-05T12:34:56.789013Z'; t between '2026-01-01' and '2026-02-01 00:00'; t = timestamp '2000-02-29'; t > date '2000-02-29'; y = '2000-02-29'
y between date '2000-01-01' and date '2026-02-01'; y > t; f = true; f <=> null; i between 1 and 7; i not between 1 and 7; d between 0 and 1.5
i in (1, 2, 7); i in (1.5, 7, 2); d in (1.5, 2.5, 0); i not in (7, null); s in ('Oven', ''); s not in ('Oven', r); t in ('2000-02-29', u); i in (null)
f and d > 0; f or d > 0; not f; !f; f and null; null or f; f is null; f is not null; f is true; f is not true; f is false; f is not false; f is unknown
f is not unknown; i is null; a is null; v is not null
case when i > 1 then 'a' else 'b' end; case i when 7 then 1 when 0 then 2 end; case when f then d else i end; case when f then 1 else 2.5 end
case when d > 0 then t end; if(f, 1, 2); if(f, t, u); if(f, 'x', s); coalesce(i, 0); coalesce(i, d); coalesce(d, 0.0); coalesce(null, s); coalesce(s, 'none')
coalesce(t, y); ifnull(i, l); nvl(s, 'x'); nvl2(i, 1, 2); nullif(i, 7); nullif(d, 0); nullif(s, 'Oven'); nullif(t, '2000-02-29'); greatest(i, l)
greatest(d, e, 1); least(d, e); least(i, null, 3); greatest(s, r); least(t, u); greatest(i, 1.5)
s || r; s || 'x' || r; concat(s, r); concat(s, i); concat(s, l, f, y); 'a' || 1; concat_ws('-', s, r); concat_ws(',', s, null, r); upper(s); ucase(s); lower(s)
lcase(s); length(s); len(s); char_length(s); character_length(s); length(b); octet_length(b); octet_length(s); trim(s); ltrim(s); rtrim(s); reverse(s)
startswith(s, r); endswith(s, r); endswith(s, ''); contains(s, r); contains(s, ''); instr(s, 'e'); instr(s, r); locate('e', s); position('e', s); left(s, 2)
left(s, 0); right(s, 2); right(s, 0); substring(s, 2); substring(s, 2, 2); substr(s, 3, 0); substring(s, 99, 1); split_part(s, 'v', 1); split_part(s, 'v', 3)
replace(s, 'e', ''); replace(s, 'v', r); lpad(s, 3, 'xy'); lpad(s, 12, 'xy'); rpad(s, 9, 'z'); lpad(s, 0, 'x'); rpad(s, 8); repeat(s, 2); repeat(s, 0)
md5(s); hex(b); s like 'o%'; s like '%n'; s like '_ven'; s like 'oven\\_1'; s like '%\\%%'; s like '%\\\\%'; s like ''; s like '%'; s like '%ß%'; s not like 'O%'
s like '%\n'; s ilike 'OVEN%'; s ilike '%ärger%'; s ilike '%i%'; s rlike '^o'; s rlike 'ven'; s rlike 'n$'; s rlike 'ß$'; s rlike '^.{4}$'; s rlike '[A-Z]'
s rlike '^(a|O).*'; s regexp '\\d'; s rlike '\\w+_\\d'; s rlike '\\s$'; s rlike '[^a-z]'; s rlike 'x|ü'; s rlike '\\\\b'; s rlike 'e{1,2}n?'; s rlike '(?:ve)+n'
abs(i); abs(l); abs(d); sign(d); sign(i); signum(d); floor(i); ceil(l); floor(m / 2); ceil(m / 2); ceiling(m / 2.0e0); sqrt(l); sqrt(m); exp(m); ln(m)
ln(d); log10(l); log2(i); pow(m, 2); power(d, 3); isnan(d); isnan(e); nanvl(d, e); nanvl(d, 1.0D); round(d); round(e, 2); round(d, 1); round(i)
round(l, 2); round(2.675D, 2); round(-0.3D); round(m / 7, 3); round(e * 1000, 4); pi()
year(t); year(y); quarter(t); quarter(y); month(t); month(y); day(t); dayofmonth(y); dayofweek(t); dayofweek(y); weekday(t); weekday(y); dayofyear(t)
dayofyear(y); weekofyear(t); weekofyear(y); hour(t); minute(t); second(t); extract(hour from t); extract(week from t); extract(doy from y); date_part('month', t)
extract(YEAR from y); date(t); to_date(t); date(y); to_date('2026-01-05'); to_timestamp('2026-01-05 12:00:00'); to_timestamp(y); timestamp(y); cast(y as timestamp)
unix_seconds(t); unix_timestamp(t); unix_millis(t); unix_micros(t); timestamp_seconds(l); timestamp_millis(l); timestamp_micros(l); unix_date(y)
datediff(y, date '2000-01-01'); datediff(t, u); date_diff(t, y); date_add(y, 1); date_add(t, i); date_sub(y, 40); y + 1; y - 1; y + i
date_trunc('hour', t); date_trunc('DAY', t); date_trunc('week', t); date_trunc('month', t); date_trunc('quarter', t); date_trunc('year', t)
date_trunc('minute', t); date_trunc('second', t); date_trunc('mm', t); date_trunc('week', y); trunc(y, 'month'); trunc(y, 'year'); trunc(t, 'week')
trunc(y, 'quarter'); date_format(t, 'yyyy-MM-dd HH:mm:ss'); date_format(y, 'dd.MM.yyyy'); date_format(t, 'HH:mm')
t + interval 1 hour; t - interval '1' day; t + interval 90 minutes; t - interval 2 weeks; t + interval '1 day 2 hours'; t + interval 1 month; t - interval 1 year
y + interval 1 day; y + interval 1 hour; y + interval 1 month; y - interval 3 months; t - interval 5 milliseconds
timestampdiff(hour, t, u); timestampdiff(SECOND, t, u); timestampdiff(day, u, t); timestampdiff(minute, t, u); timestampdiff(week, t, u); datediff(hour, t, u)
cast(i as bigint); cast(i as double); cast(i as string); cast(l as string); cast(f as string); cast(y as string); cast(t as string); cast(f as int)
cast(t as date); cast('2026-01-05' as timestamp); cast('2026-01-05' as date); cast('12' as int); cast('-1.5' as double); cast('nan' as double); double('infinity')
cast(1.9D as int); cast(-1.9D as bigint); cast(m as int); m::int; i::string; double(i); int(m); bigint(i); string(i); cast(null as double); cast(m / 2 as int)
cast(s as binary); cast(1 as double); cast(1.5 as double); boolean(f)
a[0 * size(a)] is null or true; get(a, 0); get(a, 1); get(a, -1); get(a, i); try_element_at(a, 2); size(a); size(g); size(v); cardinality(g); array_size(a)
array_contains(a, 1.0D); array_contains(a, 2); array_contains(a, double('nan')); array_contains(g, 'a'); array_contains(g, r); array_contains(a, d)
v['k']; v['none']; element_at(v, 'j'); try_element_at(v, 'k'); map_keys(v); map_values(v); get(g, 0); a; g; v; b; t; y; f
(select max(i) from ops.edges); i + (select count(*) from ops.edges); 1; -1; 3000000000; 1.5; .5; 5.; -1.5; 1e3; 1.5D; 1L; 'text'; "double"; null; true; date '2026-01-05'
r'a\n'; 'it''s'; 'a' 'b'; '\u00e4\101\t'; 'a\%b'; '\q'; 0.05; 00012; -2147483648; 9223372036854775807
"""
"""Each over every row of `ops.edges`, by itself, with the name that Spark gives its column."""
UNNAMED = frozenset(
    each.strip()
    for each in EXPRESSIONS.replace("\n", ";").split(";")
    if "+ interval" in each
    or "- interval" in each
    or each.strip() in {"rpad(s, 8)", "double('infinity')", "array_contains(a, double('nan'))"}
)
"""Of these the ones of which the fast engine does not know how Spark names them."""
AGGREGATED = """
count(*); count(1); count(i); count(a); count(distinct i); count(distinct d); count(distinct s); count_if(f); sum(i); sum(l); sum(e - e + 1); sum(distinct i); sum(distinct l)
sum(m); avg(i); avg(l); mean(m); avg(distinct i); min(i); max(l); min(d); max(d); min(e); max(e); min(s); max(s); min(t); max(y); min(b); max(f); min(f)
bool_or(f); bool_and(f); some(f); every(f); any(f); stddev(m); stddev(i); std(l); stddev_samp(m); stddev_pop(m); variance(m); var_samp(i); var_pop(i)
covar_pop(i, m); covar_samp(i, m); corr(i, m); median(m); median(i); percentile(m, 0.25); percentile(l, 0.9); max_by(s, id); min_by(d, id); max_by(t, id); min_by(id, l)
count(*) filter (where i > 1); sum(i) filter (where f); max(s) filter (where d > 0); count(distinct s) filter (where id > 3); max_by(id, t) filter (where f)
max(i) + 1; sum(i) / count(*); round(avg(m), 2); count(*) * 100e0 / sum(m); max(t) > min(t); coalesce(sum(i), 0); max(i) - min(i); count(null); min(i + l)
"""
"""Each over all rows of `ops.edges`, over none of them, and by the value of `f`."""
WINDOWED = """
row_number() over (order by id); rank() over (order by i); dense_rank() over (order by i desc); rank() over (partition by f order by d desc nulls last, id)
percent_rank() over (order by i); cume_dist() over (order by i); ntile(3) over (order by id); lag(i) over (order by id); lag(d, 2) over (partition by f order by id)
lead(s) over (order by id desc); count(*) over (); count(i) over (partition by f); sum(i) over (order by id); sum(l) over (partition by s); sum(m) over (order by i)
avg(m) over (order by id rows between unbounded preceding and current row); min(t) over (order by id); max(s) over (partition by f order by id)
sum(m) over (order by id rows between 2 preceding and current row); count(*) over (order by id rows between 1 preceding and 1 following)
max(i) over (order by id rows between current row and unbounded following); first_value(i) over (order by id); last_value(i) over (order by i)
nth_value(s, 2) over (order by id); first_value(d) over (partition by f order by id); row_number() over (order by d, id); row_number() over (partition by d order by id)
i - lag(i) over (order by id); row_number() over (order by s desc nulls first, id); sum(i) over (partition by f, s order by id)
"""
"""Each over every row of `ops.edges`; all of them need an alias."""
QUERIES = (
    "select * from silver.readings order by bronze_batch, bronze_row, part",
    "select * from SILVER.Readings order by bronze_batch, bronze_row, part limit 3",
    "select device_id, `value` as v, r.metric from `silver`.`readings` r where value > 1 order by v desc, event_time, 1 limit 5 offset 2",
    "select readings.value, silver.readings.metric from silver.readings order by value, metric, readings.event_time",
    "select metric, count(*) as n from silver.readings group by metric order by n desc, metric",
    "select metric, count(*) from silver.readings group by 1 order by 2 desc, 1",
    "select upper(metric) as m, sum(value) from silver.readings group by m having sum(value) > 10 order by m",
    "select metric, device_id, max(value) from silver.readings group by all order by metric, device_id",
    "select metric, avg(value), min(value), max(value), median(value) from silver.readings group by metric having count(*) > 1 order by metric",
    "select date_trunc('hour', event_time) as hour, avg(value) from silver.readings group by hour order by hour",
    "select date_trunc('hour', event_time), device_id, count(*) from silver.readings group by date_trunc('hour', event_time), device_id order by 1, 2",
    "select hour(event_time) + 1 as h, count(*) + 1 as n from silver.readings group by hour(event_time) order by h",
    "select distinct device_id from silver.readings where metric in ('temperature', 'power') and value between 0 and 100 order by device_id",
    "select count(*) from (select distinct groups from silver.readings)",
    "select * from silver.readings where not (value > 1 or value is null) and device_id like 'ov%' and metric rlike '^t' order by event_time",
    "select * from silver.readings where event_time >= timestamp '2026-01-05 00:00:00' and event_time < timestamp'2026-01-06' order by bronze_batch, bronze_row",
    "select count(*) from silver.readings where event_time > current_timestamp() - interval 3000 days",
    "select rule, count(*) as n from silver.quarantine lateral view explode(broken_rules) t as rule group by rule order by rule",
    "select device_id, explode(groups) as g from silver.readings order by bronze_row, g",
    "select explode(broken_rules) from silver.quarantine order by 1",
    "select bronze_row, broken_rules[0], cast(payload as string) as text, length(payload) from silver.quarantine "
    "where not array_contains(broken_rules, 'payload_is_utf8') order by bronze_batch, bronze_row, part",
    "select count(1) from silver.quarantine where array_contains(broken_rules, 'value_is_a_number')",
    "select payload, source, position, bronze_batch from bronze.events order by bronze_batch, bronze_row",
    "select entity, window_start, vector, missing, filled from gold.kitchen_vectors order by window_start desc, entity",
    "select entity, get(vector, 0) as first, vector[1] as second, size(missing) from gold.kitchen_vectors order by entity, window_end",
    "select * from gold.kitchen_aggregates order by device_id, metric, window_end",
    "select * from gold.kitchen_aggregates_history order by device_id, metric, window_end, revision",
    "select revision, count(*) from gold.kitchen_aggregates_history group by revision order by revision",
    "select * from gold.presses_vectors order by window_end",
    "select a.device_id, a.value, b.value as other from gold.kitchen_aggregates a join gold.kitchen_aggregates_history b "
    "on a.device_id = b.device_id and a.metric = b.metric and a.window_end = b.window_end and b.revision = 0 order by 1, a.window_end, 2, 3",
    "select * from gold.kitchen_aggregates a left join gold.presses_aggregates b using (window_end) order by window_end, a.device_id, a.metric",
    "select device_id, metric, count(*) from gold.kitchen_aggregates a full join silver.readings r using (device_id, metric) group by all order by 1, 2",
    "select r.device_id, a.window_end from silver.readings r right outer join gold.kitchen_aggregates a on a.device_id = r.device_id and r.value > a.value "
    "order by a.window_end nulls last, a.metric, r.bronze_row, r.device_id",
    "select device_id, metric from gold.kitchen_aggregates a left semi join silver.readings r on a.device_id = r.device_id order by 1, 2, a.window_end",
    "select device_id from silver.readings r left anti join gold.kitchen_aggregates a on a.device_id = r.device_id order by 1",
    "select count(*) from gold.kitchen_aggregates a cross join gold.presses_aggregates b",
    "select /*+ broadcast(b) */ count(*) from gold.kitchen_aggregates a, gold.presses_aggregates b where a.window_start = b.window_start",
    "with k as (select * from gold.kitchen_aggregates) select metric, max(value) from k group by metric order by metric",
    "with a as (select 1 as x), b as (select x + 1 as y from a) select * from a, b",
    "with a(x) as (select 1) select (with a as (select 2 as x) select x from a) as inner_x, x from a",
    "select * from (with a as (select 7 as x) select * from a) t",
    "with r as (select device_id, value from silver.readings) select a.device_id, count(*) from r a join r b on a.value = b.value group by 1 order by 1",
    "select value from silver.readings where value > (select avg(value) from silver.readings) order by value",
    "select device_id from silver.readings where device_id not in (select device_id from gold.presses_aggregates) order by 1",
    "select distinct metric from silver.readings where device_id in (select device_id from gold.kitchen_aggregates) and value > 0 order by metric",
    "select device_id from silver.readings union select device_id from gold.presses_aggregates order by device_id",
    "select device_id from silver.readings union all select device_id from gold.presses_aggregates order by 1",
    "select device_id from silver.readings intersect select device_id from gold.kitchen_aggregates order by 1",
    "(select device_id from silver.readings except select device_id from gold.presses_aggregates) order by 1",
    "select part, value from silver.readings union all select bronze_row, 1.5 from silver.readings order by 1, 2",
    "select device_id, value, row_number() over (partition by device_id order by event_time, bronze_row) as n from silver.readings order by 1, 3",
    "select value - lag(value) over (partition by device_id, metric order by event_time) as change from silver.readings order by bronze_batch, bronze_row",
    "select * from (select device_id, value, rank() over (partition by device_id order by value desc) as place from silver.readings) where place = 1 order by 1, 2",
    "select metric, sum(count(*)) over (order by metric) as so_far from silver.readings group by metric order by metric",
    "select case when value > 10 then 'high' when value > 5 then 'mid' else 'low' end as level, count(*) from silver.readings group by level order by level",
    "select source, bronze_batch, events, readings + quarantined + late + duplicates as sum from ops.ledger order by 1, 2 -- the account",
    "select snapshot_id, at, versions['silver.readings'], closed_until['kitchen'] from ops.snapshots order by snapshot_id",
    "select * from ops.snapshots order by snapshot_id",
    "select size(versions) from ops.snapshots order by snapshot_id",
    "select * from (values (1, 'a'), (2, 'b'), (3, null)) as t(n, s) where s <> 'a' and n <=> 2",
    "values (1, 'a'), (2, null), (null, 'c') order by 1",
    "select col1 + 1 from values (1), (2.5) order by col1 desc",
    "table ops.ledger order by bronze_batch, source",
    "select 1 as one, 'two' as two, 3.0 as three, null as nothing, true as yes",
    "select x.value from silver.readings x join (select max(event_time) as t from silver.readings) y on x.event_time = y.t order by 1",
    "/* how /* many */ */ select count(1) from silver.late; ",
    "select id, d from ops.edges order by d, id",
    "select id, d from ops.edges order by d desc, id desc",
    "select id, s from ops.edges order by s desc nulls first, id",
    "select d, count(*), min(id) from ops.edges group by d order by 3",
    "select e from ops.edges union select d from ops.edges order by 1",
    "select d from ops.edges intersect select e from ops.edges order by d",
    "select distinct d, f from ops.edges order by f, d",
    "select a.id, b.id as other from ops.edges a join ops.edges b on a.d = b.e order by 1, 2",
    "select i from ops.edges where i not in (select i from ops.edges where i is null) order by i",
    "select id from ops.edges where i not in (select i from ops.edges where i = 7) order by id",
    "select id from ops.edges where i not in (select i from ops.edges where false) order by id",
    "select id, x from ops.edges lateral view explode(a) as x order by id, x",
    "select b, count(*) from ops.edges group by b order by b",
    "select f, g, count(*) from ops.edges group by f, g order by 3 desc, 1, size(g), get(g, 0), get(g, 1)",
    "select i as s, s as i from ops.edges order by i, s",
    "select -id as id from ops.edges order by id",
    "select -id as id from ops.edges order by edges.id",
    "select id as x, x * 2 as y from ops.edges order by y desc limit 2",
    "select f, max(id) as id from ops.edges group by f having id > 8 order by id",
    "select id from ops.edges order by abs(i - 3), id",
    "select max(i) from ops.edges where false",
    "select f, count(*) from ops.edges where false group by f",
    "select * from ops.edges where false",
    "select * except (a, B) from ops.edges order by id",
    "select e.* except (id), e.id from ops.edges e order by e.id",
    "select ID, Edges.i as I from ops.EDGES order by Id limit 2",
    "select one from (select 1 as one) limit 0",
    "select a.id, b.i from ops.edges a join ops.edges b order by a.id, b.id",
)
"""Over a lake of the real flows (see lakes) with `ops.edges` beside its tables; ordered as far as it matters."""


REFUSED = (
    # Another meaning in DataFusion, or one that depends on how rows are spread.
    "select any_value(s) from ops.edges",
    "select first(i) from ops.edges",
    "select collect_list(i) from ops.edges",
    "select collect_set(s) from ops.edges",
    "select approx_count_distinct(i) from ops.edges",
    "select percentile_approx(d, 0.5) from ops.edges",
    "select mode(s) from ops.edges",
    "select count(distinct i, l) from ops.edges",
    "select skewness(d) from ops.edges",
    "select rand() from ops.edges",
    "select uuid()",
    "select initcap(s) from ops.edges",
    "select hash(s) from ops.edges",
    "select array(1, 2)[0]",
    "select element_at(a, -1) from ops.edges",
    "select transform(a, x -> x * 2) from ops.edges",
    "select exists(a, x -> x > 1) from ops.edges",
    "select sort_array(a) from ops.edges",
    "select named_struct('a', 1)",
    "select map('a', 1)",
    "select explode_outer(g) from ops.edges",
    "select posexplode(g) from ops.edges",
    "select id, x from ops.edges lateral view outer explode(a) t as x",
    "select explode(g), explode(a) from ops.edges",
    # Texts as numbers, numbers as texts.
    "select s from ops.edges where s = 5",
    "select s + 1 from ops.edges",
    "select i from ops.edges where i = '7'",
    "select coalesce(i, 'none') from ops.edges",
    "select cast(s as int) from ops.edges",
    "select cast(s as double) from ops.edges",
    "select cast(d as string) from ops.edges",
    "select concat(s, d) from ops.edges",
    "select case when f then i else s end from ops.edges",
    "select i from ops.edges union select s from ops.edges",
    "select t > s from ops.edges",
    "select t from ops.edges where t > 'yesterday'",
    "select t from ops.edges where t > '2026-1-5'",
    "select cast(t as timestamp_ntz) from ops.edges",
    # Numbers.
    "select 1.5 / 3",
    "select i / 2.5 from ops.edges",
    "select round(1.25, 1)",
    "select round(d, 9) from ops.edges",
    "select round(i, -1) from ops.edges",
    "select bround(d) from ops.edges",
    "select pow(i, -1) from ops.edges",
    "select pow(d, e) from ops.edges",
    "select sum(1.5) from ops.edges",
    "select i & 1 from ops.edges",
    "select pmod(d, 2) from ops.edges",
    "select cast(d as decimal(10, 2)) from ops.edges",
    # Texts.
    "select substring(s, 0, 2) from ops.edges",
    "select substring(s, -2) from ops.edges",
    "select substring(s, i) from ops.edges",
    "select left(s, -1) from ops.edges",
    "select repeat(s, 1000000) from ops.edges",
    "select regexp_replace(s, 'a', 'b') from ops.edges",
    "select split(s, ',') from ops.edges",
    "select s like r from ops.edges",
    "select s like '%x%' escape 'x' from ops.edges",
    "select s rlike '(?i)oven' from ops.edges",
    "select s rlike '\\\\bv' from ops.edges",
    "select s rlike '(a)\\\\1' from ops.edges",
    "select s rlike 'a$b' from ops.edges",
    "select s rlike '[a-z&&[^b]]' from ops.edges",
    "select get_json_object(s, '$.a') from ops.edges",
    "select from_json(s, 'a int') from ops.edges",
    "select date_format(t, 'EEEE') from ops.edges",
    "select date_format(t, 'MMMM yyyy') from ops.edges",
    "select to_date(s, 'yyyy') from ops.edges",
    "select s collate unicode_ci from ops.edges",
    # Time.
    "select t - u from ops.edges",
    "select y - date '2026-01-01' from ops.edges",
    "select interval 1 hour",
    "select t + interval 1.5 hours from ops.edges",
    "select extract(second from t) from ops.edges",
    "select date_trunc('century', t) from ops.edges",
    "select timestampdiff(month, t, u) from ops.edges",
    "select months_between(t, u) from ops.edges",
    "select window(t, '10 minutes') from ops.edges",
    "select from_utc_timestamp(t, 'Europe/Berlin') from ops.edges",
    # Forms of queries.
    "select f, count(*) from ops.edges group by rollup (f)",
    "select f, count(*) from ops.edges group by grouping sets ((f), ())",
    "select * from ops.edges where exists (select 1 from ops.edges e where e.i = edges.i)",
    "select id from ops.edges where i in (select i from ops.edges) or f",
    "select * from ops.edges a natural join ops.edges b",
    "select * from ops.edges tablesample (10 percent)",
    "select * from range(10)",
    "select * from ops.edges pivot (max(i) for f in (true, false))",
    "select id from ops.edges qualify row_number() over (order by id) = 1",
    "select i from ops.edges except all select 1",
    "select sum(d) over (order by id rows between 1 preceding and current row) as x from ops.edges",
    "select sum(i) over (order by id range between 1 preceding and current row) as x from ops.edges",
    "select median(d) over () as x from ops.edges",
    "select distinct i from ops.edges order by l",
    "select f, max(i) as i from ops.edges group by f order by max(i)",
    "select a from ops.edges order by a",
    "select v from ops.edges group by v",
    "select a = a from ops.edges",
    "from ops.edges |> where i > 1",
    "with recursive x as (select 1) select * from x",
    "select count(*) from ops.edges order by all",
    "select * from ops.edges version as of 0",
    "select cast(b as string) from ops.edges",
    "select * from ops.edges a, ops.edges b join ops.edges c on a.i = c.i",
    "select i from ops.edges where i = 1 = f",
    "describe ops.edges",
    "show tables",
    "explain select 1",
    "select current_user()",
    "select `unary+`(i) from ops.edges",
)
"""What Spark may answer, and otherwise than DataFusion would, or than is known of it."""
