"""What another policy, panel or budget would have bought on a stream that was recorded.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.whatif.comparison import Comparison as Comparison
    from venire.whatif.comparison import Paired as Paired
    from venire.whatif.comparison import what_if as what_if
    from venire.whatif.reruns import Plan as Plan
    from venire.whatif.reruns import Recorded as Recorded
    from venire.whatif.reruns import Rerun as Rerun
    from venire.whatif.reruns import rerun as rerun
else:
    __getattr__, __dir__ = attach(__name__)
