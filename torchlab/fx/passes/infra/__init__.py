"""The frame of passes: one pass, many in a row, partitions."""
