"""Compare two revisions of ellzero in one interleaved run. `python -m benchmarks.ab --base REV`."""
