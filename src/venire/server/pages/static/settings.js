// Saves those settings that were changed; says beside a field what is wrong with it.
"use strict";

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!readable()) return;
  const changed = changes();
  if (!Object.keys(changed).length) return void (said.textContent = "nothing was changed");
  said.textContent = "saving…";
  const path = `/v1/streams/${encodeURIComponent(form.dataset.stream)}`;
  const headers = { "content-type": "application/json" };
  const answer = await fetch(path, { method: "PATCH", headers, body: JSON.stringify(changed) }).catch(() => null);
  const told = await answer?.json().catch(() => null);
  if (answer?.status === 401) return location.reload();
  if (!answer?.ok) return blame(told?.error);
  location.assign(`${location.pathname}?saved=${told.version}`);
});
