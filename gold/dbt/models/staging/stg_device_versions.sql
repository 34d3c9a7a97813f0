select device_id, zone, groups, label, is_known, origin, registered_at
from {{ source('silver', 'devices') }}
