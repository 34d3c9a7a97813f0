{#-
  Versions of a device that came and went between two builds: dbt's snapshot sees the newest one alone.

  Every version of the registry that the history lacks is inserted, and what was followed by it ends there. Nothing is ever removed.
-#}
{% macro complete_history(versions) -%}
  merge into {{ this }} as known
  using (
    select
      *,
      {{ snapshot_hash_arguments(['device_id', 'registered_at']) }} as dbt_scd_id,
      registered_at as dbt_updated_at,
      registered_at as dbt_valid_from,
      lead(registered_at) over (partition by device_id order by registered_at) as dbt_valid_to
    from {{ versions }}
  ) as version
  on known.dbt_scd_id = version.dbt_scd_id
  when matched and version.dbt_valid_to is not null and not (known.dbt_valid_to <=> version.dbt_valid_to)
    then update set dbt_valid_to = version.dbt_valid_to
  when not matched then insert *
{%- endmacro %}
