"""The commands `venire demo`, `compare` and `reproduce`."""
