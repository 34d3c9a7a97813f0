"""Tests of a conf: messages through all layers, in process, without Spark; nothing is written."""
