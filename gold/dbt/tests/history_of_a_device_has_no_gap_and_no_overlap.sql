with versions as (
  select device_id, dbt_valid_from, dbt_valid_to, lead(dbt_valid_from) over (partition by device_id order by dbt_valid_from) as next_from
  from {{ ref('device_history') }}
)
select * from versions where not (dbt_valid_to <=> next_from)
