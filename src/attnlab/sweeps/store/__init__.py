"""Where the results of a sweep are stored: blocks of runs, records and locks, in folders and at URLs.

From the bytes up: ``_zarr`` (Zarr in one ZIP file, checked before it is decoded), ``_stack`` (runs
of one structure in memory), ``_block`` (stacks as one file), ``_manifest`` (the plan, the labels of
blocks, failures), ``_lock`` (one owner at a time), ``_store`` (the folder of a sweep), ``_records``
(what a command leaves behind).
"""
