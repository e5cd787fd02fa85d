// Sends reviews: one form for each verdict. What is sent is gold, so nothing is sent by a single
// key: a number chooses the class, Enter sends the form that has the focus.
"use strict";

const list = document.getElementById("reviews");
const stream = encodeURIComponent(list.dataset.stream);
const forms = [...list.querySelectorAll("form.judge")];
const SAID = {
  confirmed: "confirmed",
  overridden: "overridden; the item is revised",
  corrected: "corrected; what was learned from it is learned again",
};

function label(form) {
  const { verdict, corrects } = form.dataset;
  if (corrects !== undefined) form.querySelector("button").disabled = form.label.value === verdict;
  else if (verdict !== "") form.querySelector("button").textContent = form.label.value === verdict ? "Confirm" : "Override";
}

function move(from, step) {
  for (let k = forms.indexOf(from) + step; k >= 0 && k < forms.length; k += step) {
    if (!forms[k].label.disabled) return forms[k].label.focus();
  }
}

async function send(form) {
  const status = form.querySelector("[role=status]");
  if (form.dataset.sending || form.label.disabled) return;
  form.dataset.sending = "1";
  const sent = { item: form.dataset.item, label: form.label.value };
  if (form.note.value) sent.note = form.note.value;
  if (form.dataset.corrects !== undefined) sent.correct = true;
  const answer = await fetch(`/v1/streams/${stream}/reviews`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(sent),
  }).catch(() => null);
  delete form.dataset.sending;
  const said = await answer?.json().catch(() => null);
  if (!answer?.ok) {
    status.className = "wrong";
    status.textContent = answer === null ? "not sent: the server cannot be reached" : `not sent: ${said?.error?.message ?? answer.status}`;
    return;
  }
  status.className = "";
  status.textContent = form.dataset.verdict === "" ? `answered: ${said.label}` : `${SAID[said.outcome]}: ${said.label}`;
  for (const part of form.elements) part.disabled = true;
  if (form.dataset.corrects !== undefined) return location.reload(); // verdict, gold and history are others
  form.closest(".card").classList.add("stale");
  move(form, 1);
}

async function sendBack(form) {
  const status = form.querySelector("[role=status]");
  const sent = { item: form.dataset.item };
  if (form.note.value) sent.note = form.note.value;
  const answer = await fetch(`/v1/streams/${stream}/send-back`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(sent),
  }).catch(() => null);
  const said = await answer?.json().catch(() => null);
  if (!answer?.ok) {
    status.className = "wrong";
    status.textContent = `not sent back: ${said?.error?.message ?? "the server cannot be reached"}`;
    return;
  }
  status.className = "";
  status.textContent = `sent back for more labels, as ${said.follow_up}`;
  for (const part of form.elements) part.disabled = true;
  form.closest(".card").classList.add("stale");
  move(form, 1);
}

for (const form of forms) {
  form.querySelector("[data-back]")?.addEventListener("click", () => sendBack(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
  form.label.addEventListener("change", () => label(form));
  label(form); // a browser may have kept what was chosen
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.name === "note") return;
  const form = event.target.closest?.("form.judge") ?? null;
  if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    move(form, event.key === "j" || form === null ? 1 : -1);
  } else if (form !== null && /^[1-9]$/.test(event.key)) {
    const classes = JSON.parse(list.dataset.classes);
    if (event.key <= classes.length) {
      event.preventDefault();
      form.label.value = classes[event.key - 1];
      label(form);
    }
  } else if (form !== null && event.key === "Enter" && event.target === form.label) {
    event.preventDefault(); // a list opens by Enter in some browsers
    form.requestSubmit();
  }
});

const bulk = document.getElementById("bulk");
bulk?.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const status = bulk.querySelector("[role=status]");
  status.textContent = "sending…";
  const how = event.target.correct.checked ? "?correct=true" : "";
  const answer = await fetch(`/v1/streams/${encodeURIComponent(bulk.dataset.stream)}/gold${how}`, {
    method: "POST",
    headers: { "content-type": "text/csv" },
    body: event.target.file.files[0],
  }).catch(() => null);
  const said = await answer?.json().catch(() => null);
  if (!answer?.ok) {
    status.textContent = `not taken: ${said?.error?.message ?? "the server cannot be reached"}`;
    return;
  }
  const refused = [...said.refusals, ...said.notes].slice(0, 5).map((one) => `line ${one.row + 2}: ${one.message}`);
  status.textContent = [`${said.accepted} taken, ${said.corrected ? `${said.corrected} corrected, ` : ""}${said.exists} known already, ${said.refused} refused`, ...refused].join("; ");
});
