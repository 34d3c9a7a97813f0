{{ config(materialized='incremental', unique_key=['device_group', 'metric', 'day']) }}

{{ rolled_up(ref('daily'), ref('stg_windows'), ['device_group', 'metric'], 'day') }}
