"""Tables through pyarrow (extra `tables`): CSV in parallel, Parquet and Arrow files.

Nothing is imported here: importing pyarrow takes longer than reading a small table.
"""
