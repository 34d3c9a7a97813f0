-- Expected is every hour from the first in which a device was heard to the newest in which anybody was. A day on which nobody at all was
-- heard has no row: then the plant or the pipeline rested, and no device can be blamed.
with present as (
  select device_id, hour_at, sum(measurements) as measurements from {{ ref('arrivals') }} group by device_id, hour_at
),
plant_hours as (
  select distinct hour_at, to_date(hour_at) as day from present
),
plant_days as (
  select day, collect_list(hour_at) as hours, (select max(hour_at) from plant_hours) as newest_hour_at from plant_hours group by day
),
spans as (
  select
    present.device_id,
    min(present.hour_at) as first_hour_at,
    max(present.hour_at) as last_hour_at,
    any_value(coalesce(devices.is_known, true)) as is_known
  from present
  left join {{ ref('stg_devices') }} as devices on present.device_id = devices.device_id
  group by present.device_id
),
expected as (
  select
    spans.device_id,
    plant_days.day,
    plant_days.hours,
    greatest(spans.first_hour_at, cast(plant_days.day as timestamp)) as from_at,
    -- A device that left the registry owes nothing after its last word.
    least(if(spans.is_known, plant_days.newest_hour_at, spans.last_hour_at), cast(plant_days.day as timestamp) + interval 23 hours) as to_at
  from spans
  inner join plant_days
    on plant_days.day >= to_date(spans.first_hour_at)
    and (spans.is_known or plant_days.day <= to_date(spans.last_hour_at))
),
counted as (
  select
    expected.device_id,
    expected.day,
    any_value((unix_seconds(expected.to_at) - unix_seconds(expected.from_at)) div 3600 + 1) as hours_expected,
    count(present.hour_at) as hours_present,
    any_value(size(filter(expected.hours, hour -> hour between expected.from_at and expected.to_at))) as hours_of_plant,
    coalesce(sum(present.measurements), 0) as measurements
  from expected
  left join present on expected.device_id = present.device_id and expected.day = to_date(present.hour_at)
  group by expected.device_id, expected.day
)
select
  device_id,
  day,
  hours_expected,
  hours_present,
  hours_expected - hours_of_plant as hours_plant_silent,
  hours_present / hours_expected as uptime,
  measurements
from counted
