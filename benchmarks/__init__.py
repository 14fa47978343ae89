"""ellzero and its peers on the same work, judged by the same refit. `python -m benchmarks`."""
