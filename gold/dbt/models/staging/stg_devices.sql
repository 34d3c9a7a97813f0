with versions as (
  select *, row_number() over (partition by device_id order by registered_at desc) as age from {{ ref('stg_device_versions') }}
)
select device_id, zone, groups, label, is_known, origin, registered_at
from versions
where age = 1
