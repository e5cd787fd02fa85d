// Labelling by keyboard. 1 to 9 choose a class, 0 is "not sure", u undoes, c comments, f flags.
//
// The next item is fetched while one is labelled, so that it is on the screen at once. A label cannot
// be changed once the server has it: the last answers are kept here for some seconds, in which u (or the
// list of the last answers) takes them back, and are sent meanwhile one by one.
"use strict";

const HOLD_ALONE = 900; // ms to undo in, where no other item may be held meanwhile
const LOOK = 250; // a key pressed sooner after an item appears was meant for the previous one
const POLL = 20; // seconds of a request that waits for work

const page = document.getElementById("work");
const stream = encodeURIComponent(page.dataset.stream);
const labeler = encodeURIComponent(page.dataset.labeler);
const undoTime = Number(page.dataset.undo) * 1000;
const statusLine = document.getElementById("status");
const payload = document.getElementById("payload");
const heldLine = document.getElementById("held");
const noteLine = document.getElementById("note");
const doneCount = document.getElementById("done");
const leftLine = document.getElementById("left"); // null unless the stream wants to say what is left
const button = (id) => document.getElementById(id);
const answering = [...Classes.buttons, button("unsure"), button("comment"), button("flag")];

let current = null; // the item on the screen
let queue = []; // items fetched ahead, the next one first
let held = []; // answers that can still be undone, oldest first; said null: not sure
let asking = false; // whether a request for work is running
let reason = ""; // why there was no work
let away = new Set(); // the items of answers being sent
let settledAt = new Map(); // of items whose answer the server has got: when it said so
let done = 0; // labels of today, of which those held can still be undone
let accepted = 0; // those of them that the server has got from this page
let left = null; // open items without an answer of this labeler, if that is known
let looking = null; // the timer until keys apply to the item on the screen
let input = performance.now(); // when somebody last did something

// what is on the screen

function clear(text) {
  payload.replaceChildren();
  payload.classList.remove("answered");
  for (const choice of Classes.buttons) choice.classList.remove("chosen");
  statusLine.textContent = text;
}

function say(text) {
  // Show why there is nothing to label, unless an item has come.
  if (current !== null) return;
  clear(text);
  Classes.clear();
}

function sayNothing() {
  // Nothing to label: why, and what one has done.
  const why = REASONS[reason] ?? reason;
  say(done === 0 ? why : `${why} You have given ${done.toLocaleString("en")} ${done === 1 ? "label" : "labels"} today.`);
}

function note(text) {
  noteLine.textContent = text;
}

function enable(buttons, can) {
  // Not `disabled`: that would take the focus away from keyboard users.
  for (const one of buttons) one.setAttribute("aria-disabled", String(!can));
}

function drawn(work) {
  // The parts are drawn when an item is fetched, so that its images are there when it is shown.
  work.drawn ??= Draw.parts(work.shown ?? [], work.item);
  return work.drawn;
}

function show(work, seen = false) {
  current = work;
  clear("");
  payload.append(...drawn(work));
  window.scrollTo(0, 0);
  Classes.clear();
  enable(answering, !work.practice);
  enable(Classes.buttons, true);
  clearTimeout(looking);
  delete page.dataset.ready;
  if (seen) page.dataset.ready = "";
  else looking = setTimeout(() => (page.dataset.ready = ""), LOOK);
  work.began = performance.now() - (work.took ?? 0);
}

function leave(said) {
  // The item on the screen is answered; it stays there, dimmed, until there is another.
  const work = current;
  current = null;
  work.took = performance.now() - work.began;
  clearTimeout(looking);
  delete page.dataset.ready;
  payload.classList.add("answered");
  for (const choice of Classes.buttons) choice.classList.toggle("chosen", choice.dataset.said === said);
  enable(answering, false);
  note("");
  return work;
}

function list() {
  enable([button("undo")], held.length > 0);
  const [last, more] = [held.at(-1), held.length - 1];
  heldLine.textContent = last === undefined ? "" : `${nameOf(last)} can be undone${more ? `, and ${more} more` : ""}`;
  Notes.draw(reopen, note);
}

const nameOf = (answer) => (answer.said === null ? "“not sure”" : `“${answer.said}”`);

// getting work

const REASONS = {
  empty: "There is nothing to label. New items will appear here.",
  all_leased: "All other open items are being labelled by others. What is left of them will appear here.",
  none_for_you: "Nothing is left for you. New items will appear here.",
  paused: "The stream is paused. Work will appear here when it goes on.",
  closed: "The stream is closed and everything is labelled: thank you.",
  over_capacity: "You hold as many items as you may. Waiting…",
  budget_spent: "The budget for labels is spent. Work will appear here when there is more.",
};

async function ask() {
  // Fetch until there is an item on the screen and one ahead; wait only after saying why there is none.
  if (asking || Practice.running()) return;
  asking = true;
  let explained = false;
  for (let wait = 500; current === null || queue.length === 0; wait = Math.min(8000, wait * 2)) {
    // Who has gone away gets nothing ahead, least of all the item on the screen once its lease is over.
    if (current !== null && performance.now() - input > current.ttl * 500) break;
    const seconds = !explained ? 0 : current === null ? POLL : Math.min(POLL, current.ttl / 3);
    const more = `wait=${seconds}&ahead=${page.dataset.ahead}&shown=true`;
    const asked = performance.now();
    const answer = await fetch(`/v1/streams/${stream}/next?labeler=${labeler}&${more}`).catch(() => null);
    if (answer === null) say("the server cannot be reached; retrying…");
    else if (answer.status === 200) {
      explained = false;
      wait = 250;
      if (receive(await answer.json().catch(() => null), asked)) continue;
    } else if (answer.status === 204) {
      wait = 250;
      reason = answer.headers.get("venire-reason");
      explained = !(await goOn());
      if (!explained) continue;
      if (reason === "closed" && current === null) break;
    } else if (answer.status === 401 && Server.unsent() === 0 && held.length === 0 && current === null) {
      location.href = `/?to=${encodeURIComponent(location.pathname + location.search)}`;
      break;
    } else say(await Server.fault(answer));
    await Server.pause(wait);
  }
  asking = false;
}

function receive(work, asked) {
  // Take an item; whether it is a new one. After a lease has expired, its item may come again, even just
  // after its answer: the server can have given it away before the answer reached it.
  if (work === null || settledAt.get(work.item) >= asked) return false;
  const known = mine().find((one) => one.item === work.item);
  if (known) Object.assign(known, { token: work.token, ttl: work.ttl, over: false });
  lease(known ?? work);
  if (known || away.has(work.item)) return false;
  reason = "";
  drawn(work);
  queue.push(work);
  if (current === null) show(queue.shift());
  return true;
}

async function goOn() {
  // No work: whether to ask again at once.
  if (reason === "over_capacity" && held.length > 0) {
    await sent(held[0], current === null ? Math.min(HOLD_ALONE, undoTime) : 0);
    return true;
  }
  const leased = reason === "over_capacity" || reason === "all_leased" || reason === "none_for_you";
  const idle = mine().length === 0 && away.size === 0;
  if (leased && idle && (await resumeHeldWork())) return true;
  sayNothing();
  return false;
}

async function resumeHeldWork() {
  // Resume work from before this page was loaded.
  const asked = performance.now();
  const path = `/v1/streams/${stream}/held?labeler=${labeler}&shown=true`;
  const answer = await Server.post(path).catch(() => null);
  if (answer === null || answer.status !== 200) return false;
  const works = await answer.json().catch(() => []); // the server is gone in the middle of it
  for (const work of works) receive(work, asked);
  return works.length > 0;
}

// answers

function answer(said) {
  // Keep an answer for some seconds in which it can be undone, and go on to the next item.
  if (current === null || !("ready" in page.dataset)) return;
  if (current.practice) {
    if (said !== null) Practice.answer(said);
    return;
  }
  const made = { work: leave(said), said, state: "held" };
  made.excerpt = Draw.excerpt(made.work.shown ?? []);
  made.settled = new Promise((resolve) => (made.settle = resolve));
  held.push(made);
  Notes.add(made);
  count(made, 1);
  if (queue.length > 0) show(queue.shift());
  else if (reason && reason !== "over_capacity") sayNothing();
  sent(made, undoTime);
  if (held.length > Notes.KEPT) flush(held[0]);
  list();
  ask();
}

function sent(made, after) {
  // Resolves when the answer has been sent or undone; it is sent after the given milliseconds.
  clearTimeout(made.timer);
  made.timer = setTimeout(() => flush(made), after);
  return made.settled;
}

async function flush(made) {
  if (made.state !== "held") return made.settled;
  take(made, "sending");
  away.add(made.work.item);
  const path = `/v1/assignments/${made.work.token}/${made.said === null ? "abstain" : "label"}`;
  const seconds = Math.round(made.work.took) / 1000;
  const reply = await Server.send(path, made.said === null ? undefined : { said: made.said, seconds });
  away.delete(made.work.item);
  settledAt.set(made.work.item, performance.now());
  made.state = "sent";
  list();
  if (!reply.ok) {
    if (made.counted) count(made, -1);
    note(`${nameOf(made)} was refused: ${await Server.fault(reply)}`);
  } else if (made.said !== null && made.counted) {
    accepted += 1;
    const outcome = await reply.json().catch(() => null);
    if (outcome?.late) note(`${nameOf(made)} arrived after the verdict; it is kept for learning`);
  }
  made.settle?.();
}

function take(made, state) {
  // An answer is no longer held.
  made.state = state;
  held = held.filter((one) => one !== made);
  clearTimeout(made.timer);
  list();
}

function reopen(made) {
  // Go back to an answer that was not sent; the item on the screen comes next.
  if (made.state !== "held") return note("too late to undo: the label has been sent");
  Notes.remove(made);
  take(made, "undone");
  count(made, -1);
  if (current !== null && !current.practice) {
    current.took = performance.now() - current.began;
    queue.unshift(current);
  }
  show(made.work, true);
  note(`${nameOf(made)} undone`);
  made.settle();
}

function undo() {
  if (held.length > 0) reopen(held.at(-1));
  else note(done === 0 ? "nothing to undo" : "too late to undo: the label has been sent");
}

function count(made, more) {
  // An answer was given, or taken back.
  made.counted = more > 0;
  if (made.said !== null) done += more;
  if (left !== null) left = Math.max(0, left - more);
  drawCounts();
}

function drawCounts() {
  doneCount.textContent = done.toLocaleString("en");
  if (left !== null && leftLine !== null) leftLine.textContent = ` · ${left.toLocaleString("en")} left`;
}

async function countToday(first) {
  // What the server counts, and the answers given here that it has not got yet.
  const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
  const path = `/v1/streams/${stream}/progress?labeler=${labeler}&since=${midnight}`;
  const known = await Server.read(path);
  if (known === null) return;
  if (first) done += Math.max(0, known.labels - accepted);
  if (known.left !== null) left = Math.max(0, known.left - held.length - away.size);
  drawCounts();
  if (first && current === null && reason) sayNothing();
}

// leases

function lease(work) {
  work.ends = performance.now() + work.ttl * 1000;
  work.beaten = 0;
  work.next = performance.now() + Math.max(1, work.ttl / 3) * 1000;
}

async function beat(work) {
  // Renew a lease while somebody is there; say when that of the item on the screen has ended.
  const now = performance.now();
  if (work.over || now < work.next) return;
  work.next = now + Math.max(1, work.ttl / 3) * 1000;
  if (input > work.beaten || work.beaten === 0) {
    work.beaten = now;
    const reply = await Server.post(`/v1/assignments/${work.token}/heartbeat`).catch(() => null);
    if (reply?.ok) work.ends = performance.now() + work.ttl * 1000;
    work.over = reply?.status === 409;
  } else work.over = now > work.ends;
  if (!work.over) return;
  queue = queue.filter((one) => one !== work); // nobody has seen it: others may have it
  if (current === work) note("others may get this item too now; your answer still counts");
}

const mine = () =>
  [current, ...queue, ...held.map((made) => made.work)].filter((work) => work && !work.practice);

setInterval(() => mine().forEach(beat), 250);

// keys and clicks

function toggleGuidelines() {
  const guide = button("guidelines");
  if (guide === null) return note("this stream has no guidelines");
  guide.open = !guide.open;
}

function talk(kind) {
  if (current !== null && !current.practice) Notes.open(current, kind, note);
}

const COMMANDS = {
  0: () => answer(null),
  s: () => answer(null),
  u: undo,
  c: () => talk("comment"),
  f: () => talk("flag"),
  g: toggleGuidelines,
  z: () => Draw.zoomIn(payload),
  p: () => Draw.play(payload),
};

function pressed(event) {
  // The meaning of a key: by its character, or by its position on other keyboard layouts.
  const place = /^(?:Digit|Numpad)([0-9])$/.exec(event.code) ?? /^Key([A-Z])$/.exec(event.code);
  if (/^[0-9a-z]$/i.test(event.key)) return event.key.toLowerCase();
  return event.key?.length === 1 ? place?.[1].toLowerCase() : undefined;
}

function choose(choice, key) {
  if (choice) answer(choice.dataset.said);
  else note(`there is no class ${key}`);
}

function typed(event) {
  // A key while the filter has the focus.
  if (event.key === "Enter") choose(Classes.first(), "of that name");
  else if (event.key === "Escape") Classes.clear();
  else if (/^[1-9]$/.test(event.key) && !Classes.begins(event.key)) choose(Classes.at(event.key - 1), event.key);
  else return;
  event.preventDefault();
}

function active() {
  input = performance.now();
  if (!asking && current !== null) ask();
}

document.addEventListener("keydown", (event) => {
  active();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || Notes.isOpen()) return;
  if (event.target === Classes.filter) return typed(event);
  if (Practice.running() && Practice.waits()) return;
  const key = pressed(event);
  if (key >= "1" && key <= "9") choose(Classes.at(key - 1), key);
  else if (Classes.many && /\p{L}/u.test(event.key) && event.key.length === 1 && !event.shiftKey) {
    Classes.filter.focus(); // the letter goes there
  } else if (Object.hasOwn(COMMANDS, key)) {
    COMMANDS[key]();
    event.preventDefault(); // the letter is not meant for the dialog that it opens
  }
});
for (const sign of ["pointermove", "pointerdown", "wheel", "scroll"]) {
  document.addEventListener(sign, active, { passive: true });
}
for (const choice of Classes.buttons) choice.addEventListener("click", () => answer(choice.dataset.said));
button("unsure").addEventListener("click", () => answer(null));
button("undo").addEventListener("click", undo);
button("comment").addEventListener("click", () => talk("comment"));
button("flag").addEventListener("click", () => talk("flag"));
button("practise")?.addEventListener("click", () => Practice.running() || practise());

window.addEventListener("beforeunload", (event) => {
  if (Server.unsent() > 0) event.preventDefault();
});
window.addEventListener("pagehide", () => {
  for (const made of held) flush(made); // which are not held then
  for (const work of mine()) Server.post(`/v1/assignments/${work.token}/release`, { bar: false });
});
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

function practise() {
  if (current !== null && !current.practice) queue.unshift(current);
  current = null;
  Practice.begin(show, (went) => {
    current = null;
    clear("getting work…");
    if (queue.length > 0) show(queue.shift());
    note(went);
    ask();
  });
}

// What a page that went away, perhaps with its browser, had not sent is sent first: twice does no harm.
Promise.all(Notes.left().map(flush)).then(() => countToday(true));
if (leftLine !== null) setInterval(() => document.hidden || countToday(false), 30000);
list();
if (matchMedia("(max-width: 60rem)").matches) button("guidelines")?.removeAttribute("open");
if (Practice.wanted()) practise();
else ask();
