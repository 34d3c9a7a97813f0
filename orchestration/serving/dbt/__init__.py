"""dbt in a process of its own, on our session: marts of one snapshot, whose history nothing replaces in silence."""
