with windows as (
  select device_group, metric, sum(readings) as readings, sum(windows) as windows from {{ ref('stg_windows') }} group by device_group, metric
),
hours as (
  select device_group, metric, sum(readings) as readings, sum(windows) as windows from {{ ref('hourly') }} group by device_group, metric
),
of_groups as (
  select device_group, metric, sum(readings) as readings, sum(windows) as windows from {{ ref('hourly_by_group') }} group by device_group, metric
)
select
  device_group,
  metric,
  windows.readings as readings_of_windows,
  hours.readings as readings_of_hours,
  of_groups.readings as readings_of_groups
from windows
full join hours using (device_group, metric)
full join of_groups using (device_group, metric)
where not (windows.readings <=> hours.readings and windows.windows <=> hours.windows)
  or not (hours.readings <=> of_groups.readings and hours.windows <=> of_groups.windows)
