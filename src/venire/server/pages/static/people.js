// Adds, retires and restores labelers, and makes, rotates and revokes their keys.
"use strict";

const people = document.getElementById("people");
const said = document.getElementById("people-status");
const dialog = document.getElementById("token");
const stream = `/v1/streams/${encodeURIComponent(people.dataset.stream)}`;
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

// invitations

const links = document.getElementById("links");

async function copy(button, text) {
  const copied = await navigator.clipboard?.writeText(text.textContent).then(() => true, () => false);
  if (copied) button.textContent = "Copied";
  else getSelection().selectAllChildren(text);
}

function listed(name, made) {
  const row = document.createElement("li");
  const who = document.createElement("bdi");
  who.textContent = name ?? "whoever opens it";
  const link = document.createElement("code");
  link.textContent = location.origin + made.path;
  link.tabIndex = 0;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `copy the link of ${who.textContent}`);
  button.addEventListener("click", () => copy(button, link));
  row.append(who, link, button);
  return row;
}

document.getElementById("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const written = document.getElementById("invite-names").value.split("\n").map((name) => name.trim()).filter(Boolean);
  const days = Number(document.getElementById("invite-days").value);
  const once = document.getElementById("invite-once").checked;
  const box = links.querySelector("ul");
  box.replaceChildren();
  for (const name of written.length ? written : [null]) {
    const made = await call("POST", `${stream}/invitations`, { labeler: name, days, once });
    if (!made) break;
    box.append(listed(name, made));
  }
  if (box.children.length) links.showModal();
});
links.addEventListener("close", () => location.reload());

document.getElementById("invitations")?.addEventListener("click", async (event) => {
  const row = event.target.closest("[data-uninvite]")?.closest("[data-invitation]");
  if (!row || !confirm("Revoke this invitation? Who came by it is signed out.")) return;
  if (await call("DELETE", `${stream}/invitations/${row.dataset.invitation}`)) location.reload();
});
