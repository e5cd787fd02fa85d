// Pauses, resumes and closes the stream.
"use strict";

const actions = document.getElementById("actions");

actions.addEventListener("click", async (event) => {
  const { verb, ask } = event.target.dataset;
  if (!verb || (ask && !confirm(ask))) return;
  const path = `/v1/streams/${encodeURIComponent(actions.dataset.stream)}/${verb}`;
  const answer = await fetch(path, { method: "POST" }).catch(() => null);
  if (answer?.ok) return location.reload();
  const said = await answer?.json().catch(() => null);
  actions.querySelector("[role=status]").textContent = said?.error?.message ?? "the server cannot be reached";
});
