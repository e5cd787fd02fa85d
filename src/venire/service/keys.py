"""API keys: 256-bit tokens of which the store keeps only the SHA-256."""

from __future__ import annotations

from venire.service.views import KeyView, NewKey, Role

__all__ = ["Keyring"]


class Keyring:
    """The keys of a server."""

    async def create(self, name: str, role: Role, labeler: str | None = None) -> NewKey:
        """Make a key; its token is seen only now."""
        raise NotImplementedError

    async def list(self) -> list[KeyView]:
        """All keys, revoked ones too."""
        raise NotImplementedError

    async def revoke(self, key: str) -> KeyView:
        """Make a key useless."""
        raise NotImplementedError

    def authenticate(self, token: str) -> KeyView | None:
        """Whose token this is, without waiting for anything; None if nobody's."""
        raise NotImplementedError
