{#-
  Parts (windows, or what was rolled up of them) as one row a key and period: columns as stg_windows names them.

  `windows`: whose `is_new` tells which periods changed. `keys`: what the parts are grouped by, beside the period that they begin in. `value` follows the aggregation type of the metric, as if the
  period had been one window; medians of parts make no median, so there it is null.
-#}
{% macro rolled_up(parts, windows, keys, period) -%}
  {%- set by = (keys + [period]) | join(', ') -%}
  with parts as (
    select
      device_group, device_id, metric, unit, aggregation, value, readings, min, max, sum, latest, from_at, until_at, windows, amended,
      {{ tidemark.period_of('from_at', period) }} as {{ period }}
    from {{ parts }}
    {% if is_incremental() -%}
    {%- set first = tidemark.first_changed(windows, 'from_at', period) -%}
    where from_at >= {{ first }} and until_at > {{ first }}
    {%- endif %}
  )
  {%- if is_incremental() %},
  changed as (
    select distinct {{ keys | join(', ') }}, {{ tidemark.period_of('from_at', period) }} as {{ period }}
    from {{ windows }} where is_new
  )
  {%- endif %}
  select
    {{ by }},
    any_value(unit) as unit,
    any_value(aggregation) as aggregation,
    {{ tidemark.value_of_parts() }} as value,
    sum(readings) as readings,
    {{ tidemark.in_order('sum') }} / sum(readings) as mean,
    min(min) as min,
    max(max) as max,
    {{ tidemark.in_order('sum') }} as sum,
    max_by(latest, struct(until_at, device_id)) as latest,
    min(from_at) as from_at,
    max(until_at) as until_at,
    sum(windows) as windows,
    sum(amended) as amended
    {%- if 'device_id' not in keys %},
    count(distinct device_id) as devices
    {%- endif %}
  from parts
  {% if is_incremental() -%} left semi join changed using ({{ by }}) {%- endif %}
  group by {{ by }}
{%- endmacro %}

{#- A sum that is the same to the last bit however the rows lie on the disk: floating point addition depends on the order. -#}
{% macro in_order(part) -%}
  aggregate(array_sort(collect_list(struct(device_id, from_at, {{ part }} as part))), 0D, (total, each) -> total + each.part)
{%- endmacro %}

{% macro value_of_parts() -%}
  case any_value(aggregation)
      when 'average' then {{ tidemark.in_order('sum') }} / sum(readings)
      when 'sum' then {{ tidemark.in_order('sum') }}
      when 'min' then min(min)
      when 'max' then max(max)
      when 'count' then cast(sum(readings) as double)
      when 'latest' then max_by(latest, struct(until_at, device_id))
      when 'first' then min_by(value, struct(from_at, device_id))
      when 'stddev' then sqrt(
        greatest({{ tidemark.in_order('(readings - 1) * coalesce(value * value, 0) + sum * sum / readings') }}
          - {{ tidemark.in_order('sum') }} * {{ tidemark.in_order('sum') }} / sum(readings), 0)
        / nullif(sum(readings) - 1, 0))
    end
{%- endmacro %}
