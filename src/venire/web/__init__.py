"""The service over HTTP: an API, two pages, and nothing that the service does not do itself."""

from venire.web.app import create_app
from venire.web.settings import ServerSettings

__all__ = ["ServerSettings", "create_app"]
