// Sends the token of an invitation, which stands behind the # and so in no log, and takes it out of the address.
"use strict";

const join = document.getElementById("join");
const waiting = document.getElementById("waiting");
if (waiting) {
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  join.elements.token.value = token;
  if (token) join.submit();
  else waiting.textContent = "This link is incomplete: open it as it was sent to you.";
}
for (const time of document.querySelectorAll("time")) {
  time.textContent = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "long", timeStyle: "short" });
}
window.addEventListener("hashchange", () => location.reload());
