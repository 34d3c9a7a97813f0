"""Sources: each brings rows and a position to bronze."""
