with sites as (
  select *, row_number() over (partition by device_id, registered_at order by moved_at desc nulls last) as age
  from {{ source('silver', 'devices') }}
)
select device_id, zone, groups, label, is_known, origin, registered_at
from sites
where age = 1
