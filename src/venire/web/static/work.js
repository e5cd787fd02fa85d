// Labelling by keyboard: 1 to 9 says what it is, s skips, u takes the last answer back.
//
// A label cannot be changed once the server has it, so it is held here for a moment, during which
// u takes it back. Who may hold two items sees the next one meanwhile; others wait that moment.
"use strict";

const HOLD_ALONE = 900;
const HOLD_WITH_NEXT = 4000;
const IMAGE = /^(data:image\/(png|jpeg|gif|webp);base64,|https:\/\/|\/(?!\/))/;

const page = document.getElementById("work");
const stream = encodeURIComponent(page.dataset.stream);
const labeler = encodeURIComponent(page.dataset.labeler);
const statusLine = document.getElementById("status");
const payload = document.getElementById("payload");
const choices = [...document.querySelectorAll("#choices button")];
const skipButton = document.getElementById("skip");
const undoButton = document.getElementById("undo");
const heldLine = document.getElementById("held");
const doneCount = document.getElementById("done");

let current = null; // the item on the screen
let held = null; // {work, said, timer}: an answer that can still be taken back
let asking = null; // the AbortController of the question for work that is under way
let active = true; // whether anybody touched the page since the last heartbeat
let done = 0;
let wait = 500;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function send(path, body) {
  // Sent until the server has it: every one of these may be sent twice.
  for (;;) {
    try {
      const answer = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        keepalive: true,
      });
      if (answer.status === 401) location.href = "/";
      if (answer.status !== 429 && answer.status < 500) return answer;
      say("the server is busy; trying again…");
    } catch {
      say("the server cannot be reached; your answer is kept and sent again…");
    }
    await pause(wait);
    wait = Math.min(8000, wait * 2);
  }
}

function say(text) {
  statusLine.textContent = text;
}

function show(work) {
  current = work;
  payload.replaceChildren();
  const ready = work !== null;
  for (const button of choices) {
    button.disabled = !ready;
    button.classList.remove("chosen");
  }
  skipButton.disabled = !ready;
  if (!ready) return;
  say("");
  payload.append(...contentOf(work.payload, work.item));
}

function contentOf(content, id) {
  // Payloads are data: text becomes a text node, an image an <img>, and nothing else is made.
  if (content === null || content === undefined) return [document.createTextNode(id)];
  if (typeof content !== "object") return [document.createTextNode(String(content))];
  const parts = [];
  if (typeof content.image === "string" && IMAGE.test(content.image)) {
    const image = document.createElement("img");
    image.alt = typeof content.text === "string" ? content.text : id;
    image.src = content.image;
    parts.push(image);
  }
  if (typeof content.text === "string") parts.push(document.createTextNode(content.text));
  if (parts.length === 0) {
    const raw = document.createElement("pre");
    raw.textContent = JSON.stringify(content, null, 2);
    parts.push(raw);
  }
  return parts;
}

const REASONS = {
  empty: "nothing to label; waiting for items…",
  all_leased: "others have all that is open; waiting…",
  none_for_you: "nothing for you for now; waiting…",
  paused: "the stream is paused; waiting…",
  closed: "the stream is closed: thank you",
  over_capacity: "you hold as many items as you may; waiting…",
  budget_spent: "all labels of the budget are given: thank you",
};

async function ask() {
  // Ask for work until there is some.
  if (asking !== null || current !== null) return;
  asking = new AbortController();
  try {
    while (current === null) {
      const patience = held === null ? 20 : 0;
      let answer;
      try {
        const path = `/v1/streams/${stream}/next?labeler=${labeler}&wait=${patience}`;
        answer = await fetch(path, { signal: asking.signal });
      } catch (fault) {
        if (fault.name === "AbortError") return;
        say("the server cannot be reached; trying again…");
        await pause(wait);
        wait = Math.min(8000, wait * 2);
        continue;
      }
      if (answer.status === 200) {
        wait = 500;
        show(await answer.json());
      } else if (answer.status === 204) {
        const reason = answer.headers.get("venire-reason");
        if (reason === "over_capacity" && held !== null) {
          await heldIsSent(HOLD_ALONE);
          continue;
        }
        if (reason === "over_capacity" && (await takeBackWhatIsHeld())) continue;
        say(REASONS[reason] ?? reason);
        await pause(patience === 0 || reason === "closed" || reason === "over_capacity" ? 1000 : 100);
      } else if (answer.status === 401) {
        location.href = "/";
        return;
      } else {
        const fault = await answer.json().catch(() => null);
        say(fault?.error?.message ?? `the server said ${answer.status}`);
        await pause(2000);
      }
    }
  } finally {
    asking = null;
  }
}

async function takeBackWhatIsHeld() {
  // Work from before this page was loaded: go on with it.
  const path = `/v1/streams/${stream}/held?labeler=${labeler}`;
  const answer = await fetch(path, { method: "POST" }).catch(() => null);
  if (answer === null || answer.status !== 200) return false;
  const [first] = await answer.json();
  if (first === undefined) return false;
  show(first);
  return true;
}

function heldIsSent(after) {
  // Resolves when the held answer has gone out, or was taken back.
  const answer = held;
  if (answer === null) return Promise.resolve();
  clearTimeout(answer.timer);
  answer.timer = setTimeout(() => flush(answer), after);
  return answer.settled;
}

async function flush(answer) {
  if (held === answer) {
    held = null;
    undoButton.disabled = true;
    heldLine.textContent = "";
  }
  clearTimeout(answer.timer);
  const reply = await send(`/v1/assignments/${answer.work.token}/label`, { said: answer.said });
  if (reply.ok) {
    done += 1;
    doneCount.textContent = String(done);
  } else {
    const fault = await reply.json().catch(() => null);
    say(fault?.error?.message ?? `the server said ${reply.status}`);
  }
  answer.settle();
}

async function choose(said) {
  if (current === null) return;
  const work = current;
  for (const button of choices) button.classList.toggle("chosen", button.dataset.said === said);
  show(null);
  if (held !== null) await flush(held);
  let settle;
  const settled = new Promise((resolve) => (settle = resolve));
  held = { work, said, settle, settled, timer: null };
  const answer = held;
  answer.timer = setTimeout(() => flush(answer), HOLD_WITH_NEXT);
  undoButton.disabled = false;
  heldLine.textContent = `“${said}” is sent in a moment`;
  ask();
}

async function skip() {
  if (current === null) return;
  const work = current;
  show(null);
  await send(`/v1/assignments/${work.token}/release`, { bar: true });
  ask();
}

async function undo() {
  if (held === null) return;
  const answer = held;
  held = null;
  clearTimeout(answer.timer);
  undoButton.disabled = true;
  heldLine.textContent = "";
  asking?.abort();
  asking = null;
  const other = current;
  show(answer.work);
  say("taken back");
  answer.settle();
  if (other !== null) await send(`/v1/assignments/${other.token}/release`, { bar: false });
}

async function heartbeat() {
  for (;;) {
    const third = current === null ? 20 : Math.max(1, current.ttl / 3);
    await pause(third * 1000);
    if (current === null || !active) continue;
    active = false;
    fetch(`/v1/assignments/${current.token}/heartbeat`, { method: "POST" }).catch(() => {});
  }
}

document.addEventListener("keydown", (event) => {
  active = true;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key >= "1" && event.key <= "9") choices[Number(event.key) - 1]?.click();
  else if (event.key === "s") skipButton.click();
  else if (event.key === "u") undoButton.click();
});
document.addEventListener("pointermove", () => (active = true));
for (const button of choices) button.addEventListener("click", () => choose(button.dataset.said));
skipButton.addEventListener("click", skip);
undoButton.addEventListener("click", undo);
window.addEventListener("pagehide", () => {
  if (held !== null) flush(held);
  if (current !== null) send(`/v1/assignments/${current.token}/release`, { bar: false });
  asking?.abort();
});

ask();
heartbeat();
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
