// Requests of the labelling page: retried until the server has them, since all are idempotent.
"use strict";

const Server = (() => {
  const WHY = {
    401: "you are signed out. In another tab, open your invitation again, or sign in",
    busy: "the server is busy",
  };
  const line = document.getElementById("unsent");
  let unsent = 0; // requests being retried

  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const post = (path, body) =>
    fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      keepalive: true,
    });
  const settles = (answer) =>
    answer !== null && answer.status !== 401 && answer.status !== 429 && answer.status < 500;

  async function send(path, body) {
    let answer = await post(path, body).catch(() => null);
    if (settles(answer)) return answer;
    unsent += 1;
    for (let wait = 500; !settles(answer); wait = Math.min(8000, wait * 2)) {
      const why = answer === null ? "the server cannot be reached" : WHY[answer.status] ?? WHY.busy;
      line.textContent = `${unsent} not sent yet: ${why}. Keep this page open; retrying…`;
      await pause(wait);
      answer = await post(path, body).catch(() => null);
    }
    unsent -= 1;
    if (unsent === 0) line.textContent = "";
    return answer;
  }

  async function fault(answer) {
    // The message of an error response.
    const body = await answer.json().catch(() => null);
    return body?.error?.message ?? `the server answered ${answer.status}`;
  }

  async function read(path) {
    const answer = await fetch(path).catch(() => null);
    return answer?.ok ? answer.json().catch(() => null) : null;
  }

  return { post, send, fault, read, pause, unsent: () => unsent };
})();
