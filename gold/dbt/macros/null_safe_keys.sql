{#- A null in a `unique_key` is a value like any other. dbt compares keys with `=`, which is never true of null: such rows would be inserted at every build. -#}

{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set merge = namespace(sql=dbt.spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates)) -%}
  {%- for key in ([unique_key] if unique_key is string else unique_key or []) -%}
    {%- set match = 'DBT_INTERNAL_SOURCE.' ~ key ~ ' = DBT_INTERNAL_DEST.' ~ key -%}
    {%- set merge.sql = merge.sql | replace(match, match | replace(' = ', ' <=> ')) -%}
  {%- endfor -%}
  {{ return(merge.sql) }}
{%- endmacro %}

{#- Of snapshots: a struct is not null where its fields are, and its nulls are equal. -#}
{% macro spark__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {%- set keys = [strategy.unique_key] if strategy.unique_key is string else strategy.unique_key -%}
  {{ return(dbt.default__snapshot_staging_table(dict(strategy, unique_key='struct(' ~ keys | join(', ') ~ ')'), source_sql, target_relation)) }}
{%- endmacro %}
