with ended as (
  -- What still fires, fires up to the newest change of any alert.
  select *, (select max(changed_at) from {{ source('at_snapshot', 'alerts') }}) as newest_at
  from {{ source('at_snapshot', 'alerts') }}
),
of_entity as (
  select
    alert,
    entity,
    count(distinct if(state = 'firing', alert_id, null)) as times_fired,
    -- Every time at which it began to fire counts against one at which that ended: so no order is needed among changes of one instant.
    sum(
      case
        when state = 'firing' and previous_state <> 'firing' then unix_micros(newest_at) - unix_micros(changed_at)
        when state <> 'firing' and previous_state = 'firing' then unix_micros(changed_at) - unix_micros(newest_at)
        else 0
      end
    ) / 1e6 as seconds_firing,
    max(if(state = 'firing', changed_at, null)) as last_fired_at
  from ended
  group by alert, entity
),
seen as (
  select alert_id, min(noted_at) as seen_at from {{ source('at_snapshot', 'acknowledgements') }} group by alert_id
),
waits as (
  select changes.alert, changes.entity, unix_micros(any_value(seen.seen_at)) - unix_micros(min(changes.known_at)) as wait_us
  from {{ source('at_snapshot', 'alerts') }} as changes
  inner join seen on changes.alert_id = seen.alert_id
  where changes.state = 'firing'
  group by changes.alert, changes.entity, changes.alert_id
),
of_seen as (
  select alert, entity, avg(wait_us) / 1e6 as mean_seconds_to_acknowledge from waits group by alert, entity
),
ranked as (
  select row_number() over (order by times_fired desc, seconds_firing desc, alert, entity) as rank, *
  from of_entity
  where times_fired > 0
)
select
  rank,
  alert,
  entity,
  times_fired,
  cast(seconds_firing as double) as seconds_firing,
  cast(mean_seconds_to_acknowledge as double) as mean_seconds_to_acknowledge,
  last_fired_at
from ranked
left join of_seen using (alert, entity)
where rank <= 10
