// Labelling by keyboard: 1 to 9 choose a class, s skips, u undoes the last of these.
//
// A label cannot be changed once the server has it, so it is held here for a moment, during which
// u undoes it. A labeler who may hold two items sees the next one meanwhile; others wait.
"use strict";

const HOLD_ALONE = 900;
const HOLD_WITH_NEXT = 4000;
const LOOK = 250; // a key pressed sooner after an item appears was meant for the previous one
const IMAGE = /^(data:image\/(png|jpeg|gif|webp);base64,|https?:\/\/)/;

const page = document.getElementById("work");
const stream = encodeURIComponent(page.dataset.stream);
const labeler = encodeURIComponent(page.dataset.labeler);
const statusLine = document.getElementById("status");
const payload = document.getElementById("payload");
const choices = [...document.querySelectorAll("#choices button")];
const skipButton = document.getElementById("skip");
const undoButton = document.getElementById("undo");
const heldLine = document.getElementById("held");
const noteLine = document.getElementById("note");
const unsentLine = document.getElementById("unsent");
const doneCount = document.getElementById("done");

let current = null; // the item to label
let held = null; // {work, said, timer, settle, settled}: can still be undone; said null: a skip
let asking = false; // whether a request for work is running
let active = true; // whether there was input since the last heartbeat
let done = 0;
let sending = 0; // answers being sent
let unsent = 0; // answers being retried
let looking = null; // the timer until keys apply to the item on the screen
let beating = null; // the timer until its next heartbeat

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const post = (path, body) =>
  fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    keepalive: true,
  });

async function send(path, body) {
  // Retry until the server has it: all of these requests are idempotent.
  let answer = await post(path, body).catch(() => null);
  if (settles(answer)) return answer;
  unsent += 1;
  for (let wait = 500; !settles(answer); wait = Math.min(8000, wait * 2)) {
    const why = answer === null ? "the server cannot be reached" : WHY[answer.status] ?? WHY.busy;
    unsentLine.textContent = `${unsent} not sent yet: ${why}. Keep this page open; retrying…`;
    await pause(wait);
    answer = await post(path, body).catch(() => null);
  }
  unsent -= 1;
  if (unsent === 0) unsentLine.textContent = "";
  return answer;
}

const WHY = { 401: "you are signed out, sign in again in another tab", busy: "the server is busy" };
const settles = (answer) =>
  answer !== null && answer.status !== 401 && answer.status !== 429 && answer.status < 500;

async function fault(answer) {
  // The message of an error response.
  const body = await answer.json().catch(() => null);
  return body?.error?.message ?? `the server answered ${answer.status}`;
}

function say(text) {
  // Show why there is nothing to label, unless an undo has brought an item back.
  if (current === null) clear(text);
}

function clear(text) {
  payload.replaceChildren();
  payload.classList.remove("answered");
  for (const button of choices) button.classList.remove("chosen");
  statusLine.textContent = text;
}

function note(text) {
  // Show the outcome of an action.
  noteLine.textContent = text;
}

function enable(buttons, can) {
  // Not `disabled`: that would take the focus away from keyboard users.
  for (const button of buttons) button.setAttribute("aria-disabled", String(!can));
}

function show(work, seen = false) {
  current = work;
  clear("");
  payload.append(...contentOf(work.payload, work.item));
  window.scrollTo(0, 0);
  enable([...choices, skipButton], true);
  if (seen) page.dataset.ready = "";
  else looking = setTimeout(() => (page.dataset.ready = ""), LOOK);
  work.ends = performance.now() + work.ttl * 1000;
  keep(work);
}

function put(said) {
  // The item on the screen is answered; it stays there, dimmed, until there is another.
  const work = current;
  current = null;
  clearTimeout(looking);
  clearTimeout(beating);
  delete page.dataset.ready;
  payload.classList.add("answered");
  for (const button of choices) button.classList.toggle("chosen", button.dataset.said === said);
  enable([...choices, skipButton], false);
  note("");
  return work;
}

function contentOf(content, id) {
  // Payloads are data: text becomes a text node, an image an <img>, and nothing else is rendered.
  if (content === null || content === undefined) return [document.createTextNode(id)];
  if (typeof content === "string" && content.startsWith("data:image/")) return [imageOf(content, id)];
  if (typeof content !== "object") return [document.createTextNode(String(content))];
  const parts = [];
  if (typeof content.image === "string") parts.push(imageOf(content.image, id));
  if (typeof content.text === "string") parts.push(document.createTextNode(content.text));
  if (parts.length === 0) {
    const raw = document.createElement("pre");
    raw.textContent = JSON.stringify(content, null, 2);
    parts.push(raw);
  }
  return parts;
}

function imageOf(address, id) {
  const image = document.createElement("img");
  const missing = document.createElement("p");
  missing.className = "wrong";
  missing.textContent = `The image cannot be shown: ${address.slice(0, 200)}`;
  if (!IMAGE.test(address)) return missing;
  image.alt = `image of ${id}`;
  image.addEventListener("error", () => image.replaceWith(missing));
  image.src = address;
  return image;
}

const REASONS = {
  empty: "nothing to label; waiting for items…",
  all_leased: "all open items are leased to others; waiting…",
  none_for_you: "nothing for you at the moment; waiting…",
  paused: "the stream is paused; waiting…",
  closed: "the stream is closed and everything is labelled: thank you",
  over_capacity: "you hold the maximum number of items; waiting…",
  budget_spent: "the label budget is spent; waiting…",
};

async function ask() {
  // Request work until there is some; use a long poll only after showing why there is none.
  if (asking) return;
  asking = true;
  let explained = false;
  for (let wait = 500; current === null; wait = Math.min(8000, wait * 2)) {
    const seconds = explained && held === null ? 20 : 0;
    const path = `/v1/streams/${stream}/next?labeler=${labeler}&wait=${seconds}`;
    const answer = await fetch(path).catch(() => null);
    if (answer === null) say("the server cannot be reached; retrying…");
    else if (answer.status === 200) await receive(await answer.json().catch(() => null));
    else if (answer.status === 204) {
      wait = 250;
      const reason = answer.headers.get("venire-reason");
      explained = !(await goOn(reason));
      if (!explained) continue;
      if (reason === "closed") break;
    } else if (answer.status === 401 && unsent === 0 && held === null) {
      location.href = `/?to=${encodeURIComponent(location.pathname + location.search)}`;
      break;
    } else say(await fault(answer));
    if (current === null) await pause(wait);
  }
  asking = false;
}

async function receive(work) {
  // If an answer was undone meanwhile, its item is on the screen: release this one.
  if (work === null) return;
  if (current === null) show(work);
  else await send(`/v1/assignments/${work.token}/release`, { bar: false });
}

async function goOn(reason) {
  // No work: whether to ask again at once.
  if (current !== null) return true;
  if (reason === "over_capacity" && held !== null) {
    await heldIsSent(HOLD_ALONE);
    return true;
  }
  const leased = reason === "over_capacity" || reason === "all_leased";
  if (leased && held === null && sending === 0 && (await resumeHeldWork())) return true;
  say(REASONS[reason] ?? reason);
  if (held !== null || reason === "over_capacity") await pause(500);
  return false;
}

async function resumeHeldWork() {
  // Resume work from before this page was loaded.
  const path = `/v1/streams/${stream}/held?labeler=${labeler}`;
  const answer = await post(path).catch(() => null);
  if (answer === null || answer.status !== 200) return false;
  const [first] = await answer.json();
  if (first === undefined) return false;
  show(first);
  return true;
}

function heldIsSent(after) {
  // Resolves when the held answer has been sent or undone.
  const answer = held;
  clearTimeout(answer.timer);
  answer.timer = setTimeout(() => flush(answer), after);
  return answer.settled;
}

async function flush(answer) {
  if (held === answer) letGo();
  clearTimeout(answer.timer);
  sending += 1;
  const skipped = answer.said === null;
  const path = `/v1/assignments/${answer.work.token}/${skipped ? "release" : "label"}`;
  const reply = await send(path, skipped ? { bar: true } : { said: answer.said });
  sending -= 1;
  if (!reply.ok) note(`${nameOf(answer)} was refused: ${await fault(reply)}`);
  else if (!skipped) {
    done += 1;
    doneCount.textContent = String(done);
    const outcome = await reply.json().catch(() => null);
    if (outcome?.late) note(`${nameOf(answer)} arrived after the verdict; it is kept for learning`);
  }
  answer.settle();
}

const nameOf = (answer) => (answer.said === null ? "the skip" : `“${answer.said}”`);

function hold(said) {
  // Hold an answer or a skip for a moment in which it can be undone, and go on.
  if (current === null || !("ready" in page.dataset)) return;
  const before = held;
  const answer = { work: put(said), said, timer: null };
  answer.settled = new Promise((resolve) => (answer.settle = resolve));
  answer.timer = setTimeout(() => flush(answer), HOLD_WITH_NEXT);
  held = answer;
  enable([undoButton], true);
  heldLine.textContent = `${nameOf(answer)} will be sent in a moment`;
  if (before === null) ask();
  else flush(before).then(ask);
}

function letGo() {
  held = null;
  enable([undoButton], false);
  heldLine.textContent = "";
}

function undo() {
  if (held === null) {
    note(done === 0 ? "nothing to undo" : "too late to undo: the label has been sent");
    return;
  }
  const answer = held;
  const other = current;
  letGo();
  clearTimeout(answer.timer);
  clearTimeout(looking);
  show(answer.work, true);
  note(`${nameOf(answer)} undone`);
  answer.settle();
  if (other !== null) send(`/v1/assignments/${other.token}/release`, { bar: false });
}

function keep(work) {
  // Renew the lease while the user is active; show when it has expired.
  clearTimeout(beating);
  beating = setTimeout(async () => {
    let over = performance.now() > work.ends;
    if (active) {
      active = false;
      const reply = await post(`/v1/assignments/${work.token}/heartbeat`).catch(() => null);
      if (reply?.ok) work.ends = performance.now() + work.ttl * 1000;
      over = reply?.status === 409;
    }
    if (current !== work) return;
    if (over) note("your lease has expired; others may get this item, but you can still label it");
    else keep(work);
  }, Math.max(1, work.ttl / 3) * 1000);
}

function pressed(event) {
  // The meaning of a key: by its character, or by its position on other keyboard layouts.
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code);
  if (/^[1-9a-z]$/i.test(event.key)) return event.key.toLowerCase();
  return digit ? digit[1] : { KeyS: "s", KeyU: "u" }[event.code];
}

document.addEventListener("keydown", (event) => {
  active = true;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const key = pressed(event);
  if (key === "s") hold(null);
  else if (key === "u") undo();
  else if (key >= "1" && key <= "9") {
    const button = choices[Number(key) - 1];
    if (button) hold(button.dataset.said);
    else note(`there is no class ${key}`);
  }
});
for (const sign of ["pointermove", "pointerdown", "wheel", "scroll"]) {
  document.addEventListener(sign, () => (active = true), { passive: true });
}
for (const button of choices) button.addEventListener("click", () => hold(button.dataset.said));
skipButton.addEventListener("click", () => hold(null));
undoButton.addEventListener("click", undo);
window.addEventListener("beforeunload", (event) => {
  if (unsent > 0) event.preventDefault();
});
window.addEventListener("pagehide", () => {
  if (held !== null) flush(held);
  if (current !== null) post(`/v1/assignments/${current.token}/release`, { bar: false });
});
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

ask();
