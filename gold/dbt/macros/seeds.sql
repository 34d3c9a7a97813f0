{#- dbt-spark drops and creates a seed, which keeps the rows of a table in the lake, so that each run would append them once more. -#}
{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
  {{ return(create_csv_table(model, agate_table)) }}
{%- endmacro %}

{% macro spark__create_csv_table(model, agate_table) -%}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set quoted = model['config'].get('quote_columns', none) -%}
  {% set sql %}
    create or replace table {{ this.render() }} (
      {%- for name in agate_table.column_names -%}
        {{ adapter.quote_seed_column(name | string, quoted) }} {{ types.get(name, adapter.convert_type(agate_table, loop.index0)) }}
        {%- if not loop.last %}, {% endif -%}
      {%- endfor -%}
    )
    {{ file_format_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ comment_clause() }}
  {% endset %}
  {% call statement('_') %}{{ sql }}{% endcall %}
  {{ return(sql) }}
{%- endmacro %}
