{{ config(materialized='incremental', unique_key=['device_id', 'metric', 'hour_at']) }}

with readings as (
  select *, date_trunc('HOUR', event_time) as hour_at
  from {{ ref('stg_readings') }}
  {% if is_incremental() -%}
  where event_time >= {{ first_changed(ref('stg_readings'), 'event_time', 'hour_at') }}
  {%- endif %}
)
{%- if is_incremental() %},
changed as (
  select distinct device_id, metric, date_trunc('HOUR', event_time) as hour_at from {{ ref('stg_readings') }} where is_new
)
{%- endif %}
select
  device_id,
  metric,
  hour_at,
  count(*) as measurements,
  count_if(is_late) as late,
  count_if(is_retried) as retried,
  count(distinct date_trunc('MINUTE', event_time)) as minutes_present,
  min(event_time) as first_at,
  max(event_time) as last_at,
  -- Summed as decimals, which give the same in any order.
  cast(sum(cast(delay_ms as decimal(20, 0))) / count(*) / 1000 as double) as mean_delay_seconds,
  max(delay_ms) / 1000 as max_delay_seconds
from readings
{% if is_incremental() -%} left semi join changed using (device_id, metric, hour_at) {%- endif %}
group by device_id, metric, hour_at
