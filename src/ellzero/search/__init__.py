"""ellzero's own search for the best support of every size."""
