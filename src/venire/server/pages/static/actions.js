// Pauses, resumes, closes, archives, restores and deletes streams. Buttons say what by data-verb, and stand in
// an element whose data-stream is the name. Deleting asks for the name.
"use strict";

const actionStatus = document.getElementById("action-status");
const deleting = document.getElementById("deleting");
const typed = document.getElementById("deleting-name");
const sure = deleting.querySelector("[value=delete]");

async function act(name, verb) {
  const path = `/v1/streams/${encodeURIComponent(name)}`;
  const request = verb === "delete" ? fetch(path, { method: "DELETE" }) : fetch(`${path}/${verb}`, { method: "POST" });
  const answer = await request.catch(() => null);
  const said = await answer?.json().catch(() => null);
  if (!answer?.ok) {
    actionStatus.textContent = said?.error?.message ?? "the server cannot be reached";
  } else if (document.getElementById("overview")) {
    actionStatus.textContent = `${name}: ${verb === "delete" ? "deleted" : said.status}`; // the list follows by itself
  } else if (verb === "delete") {
    location.assign("/");
  } else {
    location.reload();
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-verb]");
  const name = button?.closest("[data-stream]")?.dataset.stream;
  if (name === undefined || (button.dataset.ask && !confirm(button.dataset.ask))) return;
  if (button.dataset.verb !== "delete") return void act(name, button.dataset.verb);
  deleting.dataset.name = name;
  deleting.querySelector("bdi").textContent = name;
  typed.value = "";
  sure.disabled = true;
  deleting.returnValue = "";
  deleting.showModal();
});

typed.addEventListener("input", () => {
  sure.disabled = typed.value !== deleting.dataset.name;
});

deleting.addEventListener("close", () => {
  if (deleting.returnValue === "delete" && typed.value === deleting.dataset.name) act(deleting.dataset.name, "delete");
});
