"""Models that people have already, as labelers: what the connectors for them share.

    model       `Model`: a function of many inputs as a labeler, in batches
    inputs      what a model is shown of an item
    scores      probabilities and scores as answers
    template    a JSON template of a request, and a path into the answer
    needs       the libraries of the extras, imported when they are used
    panel       models in a panel file
    batching    calls that come one by one, made many at a time
    working     a panel as workers of a stream on a running server

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
