with heard as (
  select device_id, hour_at, sum(measurements) as measurements, sum(late) as late
  from {{ ref('arrivals') }}
  group by device_id, hour_at
),
gaps as (
  select
    heard.device_id,
    heard.measurements,
    heard.late,
    coalesce(
      lead(heard.hour_at) over (partition by heard.device_id order by heard.hour_at),
      -- A device that left the registry is not missed after its last word.
      if(coalesce(devices.is_known, true), (select max(hour_at) from heard), heard.hour_at) + interval 1 hour
    ) as next_at,
    heard.hour_at
  from heard
  left join {{ ref('stg_devices') }} as devices on heard.device_id = devices.device_id
),
of_heard as (
  select
    device_id,
    sum(measurements) as measurements,
    sum(late) as late,
    max((unix_seconds(next_at) - unix_seconds(hour_at)) div 3600 - 1) as longest_gap_hours
  from gaps
  group by device_id
),
of_rejected as (
  select device_id, sum(quarantined) as quarantined, sum(duplicates) as duplicates from {{ ref('stg_rejected') }} group by device_id
),
of_uptime as (
  select device_id, sum(hours_expected) as hours_expected, sum(hours_present) as hours_present from {{ ref('uptime') }} group by device_id
),
shares as (
  select
    device_id,
    coalesce(devices.is_known, false) as is_registered,
    coalesce(of_heard.measurements, 0) as measurements,
    coalesce(of_heard.late, 0) as late,
    coalesce(of_rejected.quarantined, 0) as quarantined,
    coalesce(of_rejected.duplicates, 0) as duplicates,
    of_heard.longest_gap_hours,
    coalesce(of_heard.late / of_heard.measurements, 0) as late_share,
    coalesce(
      of_rejected.quarantined / (of_rejected.quarantined + of_rejected.duplicates + coalesce(of_heard.measurements, 0)), 0
    ) as quarantine_share,
    coalesce(1 - of_uptime.hours_present / of_uptime.hours_expected, 1) as gap_share
  from {{ ref('stg_devices') }} as devices
  full join of_heard using (device_id)
  left join of_rejected using (device_id)
  left join of_uptime using (device_id)
  -- One that was never heard and is not awaited either is no device of the plant.
  where devices.is_known or of_heard.device_id is not null
)
select
  row_number() over (order by late_share + quarantine_share + gap_share desc, device_id) as rank,
  device_id,
  is_registered,
  measurements,
  late,
  quarantined,
  duplicates,
  late_share,
  quarantine_share,
  gap_share,
  longest_gap_hours,
  late_share + quarantine_share + gap_share as defect_score
from shares
