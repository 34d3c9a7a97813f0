"""dbt in a process of its own, on Tidemark's Spark session: marts of one snapshot, whose history is never replaced in silence."""
