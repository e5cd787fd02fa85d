"""Plans of what to do otherwise, from the body of a request or the form of a page."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import QueryParams

from venire.budget import Budget
from venire.server.settings import Name
from venire.whatif import Plan

__all__ = ["PlanBody", "plan_of", "planned"]


class PlanBody(BaseModel):
    """What to do otherwise; what is left out stays as it was.

    `without` are labelers who are left out, or the student. `money` or `labels` is the most to
    spend on the whole log: then items leave with the labels they have. Labels that the log does not
    hold are never asked for, unless `simulate_missing` lets them be drawn.
    """

    model_config = ConfigDict(extra="forbid")

    policy: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    learning: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    without: Annotated[list[Name], Field(max_length=10_000)] = []
    money: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    labels: Annotated[int, Field(ge=0, le=2**53)] | None = None
    min_confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    max_labels: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    simulate_missing: bool = False


def plan_of(wanted: PlanBody) -> Plan:
    """The plan of a body.

    >>> plan_of(PlanBody(policy="fixed-overlap:3", money=50)).budget.money
    50.0
    """
    budget = None
    if wanted.money is not None or wanted.labels is not None:
        budget = Budget(money=wanted.money, labels=wanted.labels)
    return Plan(
        wanted.policy,
        wanted.learning,
        frozenset(wanted.without),
        budget,
        wanted.min_confidence,
        wanted.max_labels,
    )


def planned(form: QueryParams) -> tuple[PlanBody | None, dict[str, str]]:
    """The plan of a form whose empty fields say nothing, and what is wrong, by field.

    >>> planned(QueryParams("policy=&max_labels=3&without=ann"))[0].max_labels
    3
    >>> planned(QueryParams("min_confidence=2"))[1]
    {'min_confidence': 'Input should be less than or equal to 1'}
    """
    given: dict[str, Any] = {name: form[name] for name in PlanBody.model_fields if form.get(name)}
    if "without" in given:
        given["without"] = [name for name in form.getlist("without") if name]
    try:
        return PlanBody.model_validate(given), {}
    except ValidationError as error:
        return None, {str(fault["loc"][0]): fault["msg"] for fault in error.errors()}
