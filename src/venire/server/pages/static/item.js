// Gets the story of the item, which takes the server a while to replay, when the page is there.
"use strict";

async function tell() {
  const line = document.getElementById("telling");
  const answer = await fetch(`${location.pathname}?story=part`).catch(() => null);
  if (answer?.status === 401) return location.reload();
  if (!answer?.ok) {
    line.textContent = "The story cannot be told now: the server is busy or cannot be reached. Reload to try again.";
    return;
  }
  const part = document.createElement("template");
  part.innerHTML = await answer.text(); // rendered by the server, with everything in it escaped
  line.replaceWith(part.content);
}

tell();
