"""The users' files: items and panels to read, results and verdicts to write.

Readers validate everything first, writers write all files or none. Names are loaded when they are
first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.files.audits import asked_output as asked_output
    from venire.files.audits import drawn_output as drawn_output
    from venire.files.audits import read_gold as read_gold
    from venire.files.audits import read_groups as read_groups
    from venire.files.audits import read_judged as read_judged
    from venire.files.audits import read_known as read_known
    from venire.files.audits import read_verdicts as read_verdicts
    from venire.files.items import ItemTable as ItemTable
    from venire.files.items import read_items as read_items
    from venire.files.items import read_panel as read_panel
    from venire.files.items import read_prices as read_prices
    from venire.files.results import Output as Output
    from venire.files.results import assignments_output as assignments_output
    from venire.files.results import check_targets as check_targets
    from venire.files.results import columns_output as columns_output
    from venire.files.results import exits_output as exits_output
    from venire.files.results import skills_output as skills_output
    from venire.files.results import to_dataset as to_dataset
    from venire.files.results import verdicts_output as verdicts_output
    from venire.files.results import write_outputs as write_outputs
else:
    __getattr__, __dir__ = attach(__name__)
