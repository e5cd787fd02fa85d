// Keeps the overview up to date. The server renders the HTML, with everything in it escaped.
"use strict";

const overview = document.getElementById("overview");
const connection = document.getElementById("connection");
let source = null;

function patch(old, now) {
  // Change only what differs, so that focus and selection stay where they are.
  if (old.isEqualNode(now)) return;
  if (old.nodeName !== now.nodeName) return old.replaceWith(now);
  if (old.nodeType === Node.TEXT_NODE) return void (old.data = now.data);
  for (const name of old.getAttributeNames()) if (!now.hasAttribute(name)) old.removeAttribute(name);
  for (const name of now.getAttributeNames()) old.setAttribute(name, now.getAttribute(name));
  if (old.childNodes.length !== now.childNodes.length) return old.replaceChildren(...now.childNodes);
  const children = [...now.childNodes];
  [...old.childNodes].forEach((child, place) => patch(child, children[place]));
}

function show(live, text) {
  connection.textContent = text;
  overview.classList.toggle("stale", !live);
}

function follow() {
  source = new EventSource("/live");
  source.addEventListener("overview", (event) => {
    const now = overview.cloneNode(false);
    now.classList.remove("stale");
    now.innerHTML = JSON.parse(event.data).html;
    patch(overview, now);
    show(true, "live");
  });
  source.onerror = async () => {
    show(false, "the server cannot be reached; these figures are stale, retrying…");
    // Browsers reconnect by themselves, except after an error response.
    if (source.readyState !== EventSource.CLOSED) return;
    const who = await fetch("/v1/me").catch(() => null);
    if (who?.status === 401) location.reload();
    else setTimeout(follow, 3000);
  };
}

follow();
window.addEventListener("pagehide", () => source.close());
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
