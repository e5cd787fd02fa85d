// Adds, tests and removes webhooks, and sends again what could not be delivered.
"use strict";

const hooks = document.getElementById("hooks");
const said = document.getElementById("hook-said");
const secret = document.getElementById("secret");
const base = `/v1/streams/${encodeURIComponent(hooks.dataset.stream)}/webhooks`;

async function call(method, path, body) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) }).catch(() => null);
  const told = await answer?.json().catch(() => ({}));
  if (answer?.ok) return told;
  said.textContent = told?.error?.message ?? "the server cannot be reached";
  return null;
}

async function test(path) {
  said.textContent = "sending a test…";
  const told = await call("POST", `${path}/ping`);
  if (!told) return void (said.textContent = `The test failed: ${said.textContent}`);
  const fine = told.status >= 200 && told.status < 300;
  said.textContent = fine ? `The test arrived (answer ${told.status}).` : `The test was refused: the answer was ${told.status}.`;
}

hooks.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-do]");
  if (button === null) return;
  const path = `${base}/${button.closest("[data-hook]").dataset.hook}`;
  if (button.dataset.do === "test") return void test(path);
  if (button.dataset.do === "again") return void ((await call("POST", `${path}/redeliver`)) && location.reload());
  if (confirm("Remove this webhook? It is told nothing more.") && (await call("DELETE", path))) location.reload();
});

document.getElementById("add-hook").addEventListener("submit", async (event) => {
  event.preventDefault();
  const format = document.getElementById("hook-format").value;
  const made = await call("POST", base, { url: document.getElementById("hook-url").value, format });
  if (!made) return;
  if (format === "text") return location.reload();
  document.getElementById("secret-text").textContent = made.secret;
  secret.showModal();
});
secret.addEventListener("close", () => location.reload());
