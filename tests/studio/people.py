"""People in Label Studio: each asks for the next task of the tab, and annotates, mostly."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.studio.servers import CONFIG, Studio
from venire.connectors.label_studio.studio import holding
from venire.files.label_config import find_control

KIND = find_control(CONFIG)


def truth(text: str) -> str:
    return "spam" if int(text.split()[-1]) % 3 == 0 else "ok"


@dataclass
class Somebody:
    """One annotator: how often one is right, and how often one does something odd."""

    studio: Studio
    project: int
    email: str
    right: float = 0.85
    odd: float = 0.05
    pause: float = 0.05
    given: set[int] = field(default_factory=set)
    made: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    faults: list[BaseException] = field(default_factory=list)

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        self.draw = random.Random(self.email)
        while not self.stop.is_set():
            try:
                self.turn()
            except httpx2.HTTPError:  # it is down, as it is now and then
                time.sleep(0.2)
            except BaseException as fault:
                self.faults.append(fault)
                return
            time.sleep(self.draw.uniform(0.5, 1.5) * self.pause)

    def turn(self) -> None:
        filters = {"conjunction": "and", "items": [holding(self.email)]}
        body = {"project": self.project, "filters": filters, "ordering": ["tasks:id"]}
        got = self.studio.send(
            "POST", "/api/dm/actions", body, self.email, id="next_task", project=self.project
        )
        if got.status_code == 404 or got.status_code >= 500:
            return
        task = got.json()
        self.given.add(task["id"])
        kind = self.draw.random()
        if kind < self.odd:
            return  # somebody who goes for lunch: the lease expires
        if kind < 2 * self.odd:
            self.annotate(task, was_cancelled=True)
        elif kind < 3 * self.odd:
            self.annotate(task)
            self.annotate(task)
        elif kind < 4 * self.odd:
            self.annotate_another(task["id"])
        else:
            self.annotate(task)

    def annotate(self, task: dict[str, Any], **more: Any) -> None:
        said = truth(task["data"]["text"])
        if self.draw.random() > self.right:
            said = "ok" if said == "spam" else "spam"
        body = {"result": KIND.result(said), **more}
        got = self.studio.send("POST", f"/api/tasks/{task['id']}/annotations", body, self.email)
        self.made += got.status_code < 300

    def annotate_another(self, given: int) -> None:
        """Annotate a task that one was not given, and that one has not been at."""
        found = [task for task in self.studio.tasks(self.project) if task["id"] != given]
        found = [task for task in found if task["id"] not in self.given]
        if found:
            self.annotate(self.draw.choice(found))
