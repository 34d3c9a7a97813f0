{{ config(materialized='incremental', unique_key=['device_group', 'metric', 'hour_at']) }}

{{ rolled_up(ref('hourly'), ref('stg_windows'), ['device_group', 'metric'], 'hour_at') }}
