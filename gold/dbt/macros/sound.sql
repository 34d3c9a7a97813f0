{#- Generic test: no two rows have the same key, none has a null in it, and every share is a number from 0 to 1. -#}
{% test sound(model, key, shares=[]) %}
  select {{ key | join(', ') }}, count(*) as rows
  from {{ model }}
  group by {{ key | join(', ') }}
  having count(*) > 1
    {%- for column in key %}
    or {{ column }} is null
    {%- endfor %}
    {%- for column in shares %}
    or not coalesce(min({{ column }}) >= 0 and max({{ column }}) <= 1, false) or count_if({{ column }} is null) > 0
    {%- endfor %}
{% endtest %}
