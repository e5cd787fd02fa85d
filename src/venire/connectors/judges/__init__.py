"""LLM judges behind an OpenAI-compatible API, as labelers: `judges.yaml`.

    async with open_judges("judges.yaml") as judges:
        answer = await judges["strict"].answer({"text": "Buy now!"})
        answer.label, answer.confidence, answer.cost

What a judge could not answer raises a `JudgeFault`; it is never a label.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.connectors.judges.answers import Answer as Answer
    from venire.connectors.judges.answers import Cache as Cache
    from venire.connectors.judges.answers import JudgeFault as JudgeFault
    from venire.connectors.judges.answers import NoLabel as NoLabel
    from venire.connectors.judges.answers import NotSure as NotSure
    from venire.connectors.judges.answers import Stopped as Stopped
    from venire.connectors.judges.answers import Unavailable as Unavailable
    from venire.connectors.judges.answers import Usage as Usage
    from venire.connectors.judges.answers import voices as voices
    from venire.connectors.judges.config import JudgeConfig as JudgeConfig
    from venire.connectors.judges.config import read_judges as read_judges
    from venire.connectors.judges.judge import Judge as Judge
    from venire.connectors.judges.panel import PairJudge as PairJudge
    from venire.connectors.judges.panel import PositionBias as PositionBias
    from venire.connectors.judges.panel import open_judges as open_judges
else:
    __getattr__, __dir__ = attach(__name__)
