// Adds, retires and restores labelers, and makes, rotates and revokes their keys.
"use strict";

const people = document.getElementById("people");
const said = document.getElementById("people-status");
const dialog = document.getElementById("token");
const base = `/v1/streams/${encodeURIComponent(people.dataset.stream)}/labelers`;

async function call(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(() => null);
  const told = await answer?.json().catch(() => null);
  if (answer?.ok) return told;
  said.textContent = told?.error?.message ?? "the server cannot be reached";
  return null;
}

function show(labeler, made) {
  // The only time that the token is seen; the page is loaded again when it is put away.
  dialog.querySelector("bdi").textContent = labeler;
  document.getElementById("token-text").textContent = made.token;
  dialog.showModal();
}

const ACTIONS = {
  retire: (labeler) =>
    confirm(`Retire ${labeler}? It gets no more work; its labels stay.`) && call("POST", `${base}/retire`, { labeler }),
  restore: (labeler) => call("POST", `${base}/restore`, { labeler }),
  revoke: (labeler, key) => confirm(`Revoke this key of ${labeler}?`) && call("DELETE", `/v1/keys/${key}`),
  rotate: (labeler, key) => call("POST", `/v1/keys/${key}/rotate`, {}),
  key: (labeler) => call("POST", "/v1/keys", { name: labeler, role: "labeler", labeler }),
};

people.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-do]");
  if (button === null) return;
  const labeler = button.closest("[data-labeler]").dataset.labeler;
  const done = await ACTIONS[button.dataset.do](labeler, button.closest("[data-key]")?.dataset.key);
  if (done?.token) show(labeler, done);
  else if (done) location.reload();
});

document.getElementById("token-copy").addEventListener("click", async (event) => {
  const text = document.getElementById("token-text");
  const copied = await navigator.clipboard?.writeText(text.textContent).then(() => true, () => false);
  if (copied) event.target.textContent = "Copied";
  else getSelection().selectAllChildren(text);
});
dialog.addEventListener("close", () => location.reload());

document.getElementById("add-labeler").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target.elements;
  const member = { id: form.id.value, capacity: Number(form.capacity.value) || 1, price: Number(form.price.value) || 0 };
  if (form.kind.value) member.kind = form.kind.value;
  if (form.competence.value) member.competence = Number(form.competence.value);
  if (form.trusted.checked) member.trusted = true;
  if (await call("POST", base, member)) location.reload();
});
