"""The second evaluator: recomputes silver and gold from bronze without Spark and without a line of the layers, and compares."""
