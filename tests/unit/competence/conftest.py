"""The first call of a kernel compiles it, so hypothesis must not watch the clock here."""

from hypothesis import settings

settings.register_profile("competence", deadline=None)
settings.load_profile("competence")
