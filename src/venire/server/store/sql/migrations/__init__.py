"""How a store of an older version becomes one of this: alembic's scripts, one per version.

A new version is a file `versions/vNNNN_what_for.py`, the same change in `tables`, `HEAD` in
`schema`, and a file of the version before in `tests/data`.
"""
