"""What is known of verdicts by a few trusted labels: their error rate, rates, a guarantee.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.audits.audit import Asked as Asked
    from venire.audits.audit import AuditReport as AuditReport
    from venire.audits.audit import Drawn as Drawn
    from venire.audits.audit import ErrorBound as ErrorBound
    from venire.audits.audit import audit_bounds as audit_bounds
    from venire.audits.audit import draw_audit as draw_audit
    from venire.audits.audit import draw_for_rate as draw_for_rate
    from venire.audits.guarantees import Guarantee as Guarantee
    from venire.audits.guarantees import guarantee as guarantee
    from venire.audits.rates import Rate as Rate
    from venire.audits.rates import precision_of as precision_of
    from venire.audits.rates import rate_difference as rate_difference
    from venire.audits.rates import recall_of as recall_of
    from venire.audits.rates import share_of as share_of
    from venire.audits.rates import win_rate as win_rate
else:
    __getattr__, __dir__ = attach(__name__)
