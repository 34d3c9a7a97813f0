-- What devices measured, whenever it came: late rows are true measurements too.
select
  device_id,
  metric,
  event_time,
  ingested_at,
  is_late,
  is_retried,
  unix_millis(ingested_at) - unix_millis(event_time) as delay_ms,
  is_new
from {{ source('at_snapshot', 'readings') }}
