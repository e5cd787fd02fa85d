"""A whole file of items at once: which labels to buy with a budget, and what they say.

    labelling     `label`, and `label_recorded`, which replays labels that are there already
    work          what is to be labelled, and who may label it
    labelers      functions and judges as labelers, and what they answer
    asking        asking them, many at a time; `journal`: what was paid for, so that a run resumes
    recorded      labels that are there already, as a source of answers
    belief        what the labels so far say
    voices        confidence as a finer answer, whose meaning is learned
    choice        the most valuable label of each item, for its price
    expert        a share of the budget for somebody whose labels are the truth
    rounds        believe, choose, ask, and again
    outcome       verdicts, costs, the curve and the labelers; `page`: as one HTML file
    pupil         what a batch knows of a student; `rehearsal`: what it saves
    files         items, panels and prices

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.batch.labelers import Answer as Answer
    from venire.batch.labelers import Caller as Caller
    from venire.batch.labelers import NoAnswer as NoAnswer
    from venire.batch.labelling import label as label
    from venire.batch.labelling import label_recorded as label_recorded
    from venire.batch.outcome import Labelled as Labelled
    from venire.batch.rounds import Progress as Progress
    from venire.batch.work import BatchItem as BatchItem
else:
    __getattr__, __dir__ = attach(__name__)
