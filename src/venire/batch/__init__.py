"""A whole file of items at once: which labels to buy with a budget, and what they say.

    labelling     `label`, `label_recorded` (which replays existing labels), and their files
    labelers      items, functions and judges as labelers, what they answer; recorded labels
    asking        asking them, many at a time; the journal of what was paid for, to resume from
    choice        what the labels so far say, and the most valuable next label of each item
    rounds        believe, choose, ask, and again; a share of the budget for an expert
    outcome       verdicts, costs, the curve and the labelers; `page`: as one HTML file

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.batch.labelers import Answer as Answer
    from venire.batch.labelers import BatchItem as BatchItem
    from venire.batch.labelers import Caller as Caller
    from venire.batch.labelers import NoAnswer as NoAnswer
    from venire.batch.labelling import label as label
    from venire.batch.labelling import label_recorded as label_recorded
    from venire.batch.outcome import Labelled as Labelled
    from venire.batch.rounds import Progress as Progress
else:
    __getattr__, __dir__ = attach(__name__)
