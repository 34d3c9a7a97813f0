-- Windows by the calendar are not counted. Expected is every window of the metric's step, from the first that the device has to the newest that its group has closed, on days on
-- which the group has any.
with windows as (
  select
    device_group, device_id, metric, readings, until_at, to_date(from_at) as day,
    unix_seconds(from_at) as start, unix_seconds(until_at) - unix_seconds(from_at) as step
  from {{ ref('stg_windows') }}
  where is_of_calendar is not true
),
group_days as (
  select distinct device_group, metric, day from windows
),
group_ends as (
  select device_group, metric, max(start) as newest_start, max(step) as step from windows group by device_group, metric
),
spans as (
  select
    windows.device_group,
    windows.device_id,
    windows.metric,
    min(windows.start) as first_start,
    max(windows.start) as last_start,
    any_value(devices.device_id is null or devices.is_known and array_contains(devices.groups, windows.device_group)) as is_member
  from windows
  left join {{ ref('stg_devices') }} as devices on windows.device_id = devices.device_id
  group by windows.device_group, windows.device_id, windows.metric
),
bounds as (
  select
    spans.device_group,
    spans.device_id,
    spans.metric,
    group_days.day,
    group_ends.step,
    greatest(spans.first_start, unix_seconds(cast(group_days.day as timestamp))) as from_second,
    -- A device that left the group owes nothing after its last window.
    least(
      if(spans.is_member, group_ends.newest_start, spans.last_start),
      unix_seconds(cast(group_days.day as timestamp)) + 86399
    ) as to_second
  from spans
  inner join group_ends using (device_group, metric)
  inner join group_days using (device_group, metric)
),
expected as (
  select
    device_group, device_id, metric, day, step,
    cast(floor(to_second / step) - ceil(from_second / step) + 1 as bigint) as windows_expected
  from bounds
),
present as (
  select device_group, device_id, metric, day, count(*) as windows_present, sum(readings) as readings
  from windows
  group by device_group, device_id, metric, day
)
select
  device_group,
  device_id,
  metric,
  day,
  expected.step as step_seconds,
  expected.windows_expected,
  coalesce(present.windows_present, 0) as windows_present,
  coalesce(present.windows_present, 0) / expected.windows_expected as completeness,
  coalesce(present.readings, 0) as readings
from expected
left join present using (device_group, device_id, metric, day)
where expected.windows_expected > 0
