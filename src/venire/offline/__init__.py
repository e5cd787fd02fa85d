"""What anyone could have earned, knowing the future: bounds, exact optima, certificates.

Names are loaded when they are first used, so that nothing is compiled before it is needed.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.offline.certificate import Certificate as Certificate
    from venire.offline.certificate import Exact as Exact
    from venire.offline.certificate import certify as certify
    from venire.offline.certificate import optimum as optimum
    from venire.offline.instance import Instance as Instance
    from venire.offline.instance import value_of as value_of
    from venire.offline.prices import bound_at as bound_at
    from venire.offline.prices import find_prices as find_prices
    from venire.offline.schedule import plan as plan
else:
    __getattr__, __dir__ = attach(__name__)
