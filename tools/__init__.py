"""What keeps the repository: run as `python -m tools.NAME`; not part of the package."""
