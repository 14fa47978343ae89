"""The methods of the paper, and `exchange`: one file each."""
