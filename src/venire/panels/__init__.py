"""Who earns their place on a panel: what is lost and saved if a labeler leaves.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.panels.cheapest import Chosen as Chosen
    from venire.panels.cheapest import best_panel as best_panel
    from venire.panels.cheapest import cheapest_panel as cheapest_panel
    from venire.panels.report import PanelMember as PanelMember
    from venire.panels.report import PanelReport as PanelReport
    from venire.panels.report import panel_report as panel_report
    from venire.panels.yardstick import Estimate as Estimate
    from venire.panels.yardstick import Yardstick as Yardstick
    from venire.panels.yardstick import second_labels as second_labels
else:
    __getattr__, __dir__ = attach(__name__)
