"""Label Studio, both ways: venire decides there who labels what, and when a task is done.

    async with LabelStudio(url, token, 7) as studio, venire.AsyncClient(server, key) as panel:
        await Sync(studio, panel, "photos", 7).run()

Each person has a tab. A lease puts a task into it, an annotation answers the lease, and a task
whose item has left is closed and gets the verdict as a prediction. Nothing is stored by the sync:
what is missing on one side is found by reading both.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.connectors.label_studio.annotations import Person as Person
    from venire.connectors.label_studio.annotations import Tally as Tally
    from venire.connectors.label_studio.annotations import choose_people as choose_people
    from venire.connectors.label_studio.exported import read_export as read_export
    from venire.connectors.label_studio.exported import with_verdicts as with_verdicts
    from venire.connectors.label_studio.studio import LabelStudio as LabelStudio
    from venire.connectors.label_studio.studio import StudioDown as StudioDown
    from venire.connectors.label_studio.studio import StudioError as StudioError
    from venire.connectors.label_studio.sync import Sync as Sync
else:
    __getattr__, __dir__ = attach(__name__)
