"""The service over HTTP: an API and two pages, with no logic of its own."""

from venire.web.app import create_app
from venire.web.settings import ServerSettings

__all__ = ["ServerSettings", "create_app"]
