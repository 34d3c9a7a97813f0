{{ config(materialized='incremental', unique_key=['device_group', 'device_id', 'metric', 'day']) }}

{{ rolled_up(ref('stg_windows'), ref('stg_windows'), ['device_group', 'device_id', 'metric'], 'day') }}
