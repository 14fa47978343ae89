"""Data as they come: columns of X, and files."""
