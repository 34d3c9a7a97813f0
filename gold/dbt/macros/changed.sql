{#- Incremental models compute anew what came since the last recorded build: whole hours or days of it, so that they equal a full rebuild. -#}

{#- The period that an instant lies in, as SQL. `hour_at` is an instant, `day` a date; both UTC. -#}
{% macro period_of(instant, period) -%}
  {%- if period == 'hour_at' -%} date_trunc('HOUR', {{ instant }}) {%- else -%} to_date({{ instant }}) {%- endif -%}
{%- endmacro %}

{#- First instant of the earliest period in which something came, as a literal, with which files are skipped; of nothing, the end of time. -#}
{% macro first_changed(rows, instant, period) -%}
  {%- set query -%}
    select cast(cast(min({{ tidemark.period_of(instant, period) }}) as timestamp) as string) from {{ rows }} where is_new
  {%- endset -%}
  {%- set found = run_query(query).columns[0].values()[0] if execute else none -%}
  timestamp '{{ found or "9999-12-31 23:59:59" }}'
{%- endmacro %}
