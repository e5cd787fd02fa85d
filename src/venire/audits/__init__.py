"""What the error rate of verdicts is at most, proved by the few that were audited.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.audits.drawing import Drawn as Drawn
    from venire.audits.drawing import draw_audit as draw_audit
    from venire.audits.error_bound import ErrorBound as ErrorBound
    from venire.audits.report import AuditReport as AuditReport
    from venire.audits.report import audit_bounds as audit_bounds
else:
    __getattr__, __dir__ = attach(__name__)
