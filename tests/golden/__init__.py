"""Golden files: recorded answers of the package, and the rules by which new answers are compared.

`problems` says what is recorded, `record` solves a problem and reads and writes its file, `rules`
compares. ``make golden`` rewrites the files.
"""
