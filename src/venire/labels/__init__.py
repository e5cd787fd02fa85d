"""Tables of labels as sparse arrays: who said what of which item."""

from venire.labels.table import Codes, LabelTable, Names, Repeats, sort_key

__all__ = ["Codes", "LabelTable", "Names", "Repeats", "sort_key"]
