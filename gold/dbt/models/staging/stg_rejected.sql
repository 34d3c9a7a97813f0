-- What became no reading, as far as the device could be read.
select device_id, cast(1 as bigint) as quarantined, cast(0 as bigint) as duplicates from {{ source('silver', 'quarantine') }}
where device_id is not null
union all
select device_id, cast(0 as bigint) as quarantined, cast(1 as bigint) as duplicates from {{ source('silver', 'duplicates') }}
