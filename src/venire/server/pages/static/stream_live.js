// Keeps the page up to date, and gets the parts of it that take the server a while.
"use strict";

async function look(form) {
  const place = form.nextElementSibling?.matches("[role=status]") ? form.nextElementSibling : document.createElement("div");
  place.setAttribute("role", "status");
  place.textContent = "one moment…";
  form.after(place);
  const asked = new URLSearchParams(new FormData(form));
  const answer = await fetch(`${location.pathname}?${asked}`).catch(() => null);
  if (answer?.status === 401) return location.reload();
  if (!answer?.ok) return void (place.textContent = "This cannot be had now: the server is busy or cannot be reached.");
  place.innerHTML = await answer.text(); // rendered by the server, with everything in it escaped
}

for (const form of document.querySelectorAll("form.looks")) {
  form.addEventListener("submit", (event) => { event.preventDefault(); look(form); });
  form.querySelector("select")?.addEventListener("change", () => look(form));
}

const connection = document.getElementById("connection");
const SECONDS = 5;
const live = (page) => [...page.querySelectorAll("[data-live]")];

function renew(page) {
  // What the server rendered anew, with everything in it escaped; what has the focus stays as it is.
  const [old, now] = [live(document), live(page)];
  if (old.length !== now.length) return location.reload();
  old.forEach((part, k) => {
    if (part.innerHTML !== now[k].innerHTML && !part.contains(document.activeElement)) part.innerHTML = now[k].innerHTML;
  });
  const data = page.getElementById("data").textContent;
  const before = document.getElementById("data");
  if (before.textContent === data) return;
  before.textContent = data;
  document.dispatchEvent(new Event("data"));
}

async function follow() {
  if (!document.hidden) {
    const answer = await fetch(location.pathname).catch(() => null);
    if (answer?.status === 401) return location.reload();
    const said = answer?.ok ? "live" : "the server cannot be reached; these figures are stale";
    if (connection.textContent !== said) connection.textContent = said;
    if (answer?.ok) renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
  }
  setTimeout(follow, 1000 * SECONDS);
}

setTimeout(follow, 1000 * SECONDS);
