"""What anyone could have earned, knowing the future: bounds, exact optima, certificates.

Names are loaded when they are first used, so that nothing compiles before it must.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.offline.certificate import Certificate, certify
    from venire.offline.exact import Exact, optimum
    from venire.offline.instance import Instance, value_of
    from venire.offline.planning import plan
    from venire.offline.prices import bound_at, find_prices

_HOME = {
    "Certificate": "certificate",
    "Exact": "exact",
    "Instance": "instance",
    "bound_at": "prices",
    "certify": "certificate",
    "find_prices": "prices",
    "optimum": "exact",
    "plan": "planning",
    "value_of": "instance",
}

__all__ = [
    "Certificate",
    "Exact",
    "Instance",
    "bound_at",
    "certify",
    "find_prices",
    "optimum",
    "plan",
    "value_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
