with hours as (
  select device_group, device_id, metric, to_date(hour_at) as day, sum(readings) as readings, min(min) as min, max(max) as max
  from {{ ref('hourly') }}
  group by device_group, device_id, metric, to_date(hour_at)
)
select device_group, device_id, metric, day, days.readings as readings_of_day, hours.readings as readings_of_hours
from {{ ref('daily') }} as days
full join hours using (device_group, device_id, metric, day)
where not (days.readings <=> hours.readings and days.min <=> hours.min and days.max <=> hours.max)
