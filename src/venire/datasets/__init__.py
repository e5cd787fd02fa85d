"""Your own data and public label sets.

Readers check everything first, writers write all or nothing. Names are loaded when they are
first used, so that `venire datasets list` needs no NumPy.
"""

from typing import TYPE_CHECKING

from venire.lazy import attach

if TYPE_CHECKING:
    from venire.datasets.items import ItemTable as ItemTable
    from venire.datasets.items import read_items as read_items
    from venire.datasets.library import cache_folder as cache_folder
    from venire.datasets.library import fetch as fetch
    from venire.datasets.library import load as load
    from venire.datasets.library import path_of as path_of
    from venire.datasets.panel import read_panel as read_panel
    from venire.datasets.registry import DataSet as DataSet
    from venire.datasets.registry import data_set as data_set
    from venire.datasets.registry import data_sets as data_sets
    from venire.datasets.results import Output as Output
    from venire.datasets.results import assignments_output as assignments_output
    from venire.datasets.results import check_targets as check_targets
    from venire.datasets.results import exits_output as exits_output
    from venire.datasets.results import write_outputs as write_outputs
    from venire.datasets.verdicts import columns_output as columns_output
    from venire.datasets.verdicts import skills_output as skills_output
    from venire.datasets.verdicts import verdicts_output as verdicts_output
else:
    __getattr__, __dir__ = attach(__name__)
