// Creates a stream, from the form or from a text of YAML or TOML.
"use strict";

async function create(body, type) {
  const answer = await fetch("/v1/streams", { method: "POST", headers: { "content-type": type }, body }).catch(() => null);
  const told = await answer?.json().catch(() => null);
  if (answer?.status === 401) return location.reload();
  if (!answer?.ok) return told?.error ?? { message: "the server cannot be reached" };
  location.assign(`/streams/${encodeURIComponent(told.name)}/upload?made=1`);
  return null;
}

const guidelines = form.elements.guidelines;
const templates = guidelines.value;

form.elements.classes.addEventListener("input", ({ target }) => {
  // What the template says of classes that are not there is not said to labelers.
  const classes = new Set(valueOf(target));
  const gone = [...templates.matchAll(/\*\*(.+?)\*\*/g)].some(([, name]) => !classes.has(name));
  if (guidelines.value === (gone ? templates : "")) guidelines.value = gone ? "" : templates;
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!readable()) return;
  const found = changes();
  const name = form.elements.name;
  if (!name.checkValidity()) {
    tell(name, "A name has letters, digits, dots, dashes and underscores, and begins with a letter or a digit.");
    said.textContent = "nothing was created: see the fields";
    return name.focus();
  }
  said.textContent = "creating… (a policy that the server has not used before is compiled first)";
  const error = await create(JSON.stringify({ ...JSON.parse(form.dataset.given), ...found }), "application/json");
  if (error) blame(error.code === "conflict" ? { faults: [{ where: "name", message: error.message }] } : error, "created");
});

document.querySelector("#pasted form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("tree");
  const told = document.getElementById("tree-said");
  const toml = /^[ \t]*([A-Za-z_][\w.-]*[ \t]*=|\[)/m.test(text.value);
  told.textContent = "creating…";
  const error = await create(text.value, toml ? "application/toml" : "application/yaml");
  if (!error) return;
  told.textContent = `nothing was created: ${(error.message ?? "").replace("invalid request: body.", "")}`;
  text.setAttribute("aria-invalid", "true");
  text.focus();
});
