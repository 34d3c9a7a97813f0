-- A sliding metric has each reading in several windows: those that stand on the grid of whole steps hold each of them once.
select
  windows.device_group,
  windows.device_id,
  windows.metric,
  metrics.unit,
  metrics.aggregation,
  windows.window_start as from_at,
  windows.window_end as until_at,
  windows.value,
  windows.count as readings,
  windows.min,
  windows.max,
  windows.sum,
  windows.latest,
  cast(1 as bigint) as windows,
  cast(if(windows.revision > 0, 1, 0) as bigint) as amended,
  metrics.metric is not null and metrics.step_seconds is null as is_of_calendar,
  windows.is_new
from {{ source('at_snapshot', 'windows') }} as windows
left join {{ source('at_snapshot', 'metrics') }} as metrics on windows.metric = metrics.metric
where metrics.metric is not null and metrics.slide_seconds is null
  or pmod(unix_seconds(windows.window_start), unix_seconds(windows.window_end) - unix_seconds(windows.window_start)) = 0
