"""Tables of labels that outgrow one machine: partitions on a Dask cluster.

loading       files of labels, one partition each, checked for whole items
table         `PartitionedTable`, which every estimator takes
model         a model over all partitions, for the estimators that climb
placing       where functions run: on a cluster (yours, or one on this machine), or here
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.cluster.partitions import connected as connected
    from venire.cluster.partitions import partitioned as partitioned
    from venire.cluster.table import PartitionedTable as PartitionedTable
else:
    __getattr__, __dir__ = attach(__name__)
