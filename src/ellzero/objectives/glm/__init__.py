"""Generalised linear models: a loss of K predictions for each row, summed over rows."""
