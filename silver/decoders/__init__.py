"""Decoders: a payload to plain objects, which are then read as those of JSON are. One file each; chain.py puts several in a row."""
