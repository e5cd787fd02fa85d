"""Public label sets: which there are, fetching and loading them.

Names are loaded when they are first used, so that `venire datasets list` needs no NumPy.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.datasets.library import cache_folder as cache_folder
    from venire.datasets.library import fetch as fetch
    from venire.datasets.library import load as load
    from venire.datasets.library import path_of as path_of
    from venire.datasets.registry import DataSet as DataSet
    from venire.datasets.registry import data_set as data_set
    from venire.datasets.registry import data_sets as data_sets
else:
    __getattr__, __dir__ = attach(__name__)
