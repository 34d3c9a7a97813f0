with arrived as (
  select sum(measurements) as measurements, sum(late) as late from {{ ref('arrivals') }}
),
accepted as (
  select count(*) as measurements, count_if(is_late) as late from {{ ref('stg_readings') }}
)
select
  arrived.measurements as measurements_of_arrivals,
  accepted.measurements as measurements_of_silver,
  arrived.late as late_of_arrivals,
  accepted.late as late_of_silver
from arrived
cross join accepted
where coalesce(arrived.measurements, 0) != accepted.measurements or coalesce(arrived.late, 0) != accepted.late
