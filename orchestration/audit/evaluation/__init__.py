"""How well anomalies are found in series whose faults are labelled."""
