"""Anomalies of vectors: detectors, the alarm rule and what a model is; pure functions of numpy arrays."""
