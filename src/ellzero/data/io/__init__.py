"""Data files: the only place that opens them, for the command line, data sets and statistics."""
