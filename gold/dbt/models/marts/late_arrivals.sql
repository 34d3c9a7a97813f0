with days as (
  select
    metric,
    to_date(hour_at) as day,
    sum(measurements) as measurements,
    sum(late) as late,
    sum(retried) as retried,
    count(distinct device_id) as devices,
    count(distinct if(late > 0, device_id, null)) as devices_late
  from {{ ref('arrivals') }}
  group by metric, to_date(hour_at)
),
delays as (
  select
    metric,
    to_date(event_time) as day,
    percentile(delay_ms, array(0.5, 0.95)) as of_late_ms,
    max(delay_ms) as longest_ms
  from {{ ref('stg_readings') }}
  where is_late
  group by metric, to_date(event_time)
)
select
  metric,
  day,
  days.measurements,
  days.late,
  days.retried,
  days.late / days.measurements as late_share,
  days.devices,
  days.devices_late,
  delays.of_late_ms[0] / 1000 as p50_delay_seconds,
  delays.of_late_ms[1] / 1000 as p95_delay_seconds,
  delays.longest_ms / 1000 as max_delay_seconds
from days
left join delays using (metric, day)
