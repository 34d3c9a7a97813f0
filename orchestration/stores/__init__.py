"""Stores of lakes: disks, and object stores."""
