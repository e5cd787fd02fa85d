"""Models that people have already, as labelers: what the connectors for them share.

    model       `Model`: a function of many inputs as a labeler, in batches: what it is shown,
                what its scores say, JSON templates of requests
    panel       models in a panel file, also as workers of a stream on a running server

The models themselves: `venire.connectors.sklearn`, `.onnx`, `.http`, `.label_studio_ml`.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.connectors.models.model import Inputs as Inputs
    from venire.connectors.models.model import Model as Model
    from venire.connectors.models.model import answers_of as answers_of
    from venire.connectors.models.panel import read_panel_of_models as read_panel_of_models
else:
    __getattr__, __dir__ = attach(__name__)
