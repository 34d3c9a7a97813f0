"""Whether what lies on the disk is what finished batches left there, and whether it fits together."""
