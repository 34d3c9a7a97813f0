"""The only room that knows paths and Delta's log: tables, snapshots, generations, positions, seals, the lease."""
