// Runs a plan without leaving the page; leaving or cancelling it stops the replay.
"use strict";

const form = document.getElementById("plan");
const cancel = document.getElementById("cancel");
const running = document.getElementById("running");
const result = document.getElementById("result");
let stop = null;

async function run() {
  stop?.abort();
  const mine = (stop = new AbortController());
  const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}?${asked}`);
  asked.set("part", "result");
  cancel.hidden = false;
  running.textContent = "replaying the log, at most a minute…";
  const answer = await fetch(`${location.pathname}?${asked}`, { signal: mine.signal }).catch(() => null);
  if (stop !== mine) return;
  cancel.hidden = true;
  running.textContent = mine.signal.aborted ? "cancelled" : answer?.ok ? "done" : "the server is busy or cannot be reached";
  if (answer?.status === 401) return location.reload();
  if (answer?.ok) result.innerHTML = await answer.text(); // rendered by the server, with everything in it escaped
}

form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
cancel.addEventListener("click", () => stop?.abort());
