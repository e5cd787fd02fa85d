// Sends the items of a file in pieces, each with the header of the file; a piece again changes nothing.
"use strict";

const upload = document.getElementById("upload");
const said = document.getElementById("upload-said");
const bar = document.getElementById("progress");
const ids = document.getElementById("ids");
const column = document.getElementById("column");
const button = upload.querySelector("button");
const PIECE = 256 * 1024;
const LISTED = 200;
const TRIES = 6;
const [NEWLINE, RETURN, SPACE, QUOTE] = [10, 13, 32, 34];
const SEPARATORS = new Set([44, 59, 9, 124, NEWLINE, RETURN]);
let state = null;

ids.addEventListener("change", () => {
  document.getElementById("column-of").hidden = ids.value !== "column";
  column.required = ids.value === "column";
});
upload.addEventListener("change", () => { state = null; button.textContent = "Send"; });

function* ends(bytes, csv) {
  // Where records end: behind line breaks that stand in no quoted field.
  let quoted = false;
  let starts = true;
  for (let n = 0; n < bytes.length; n += 1) {
    const byte = bytes[n];
    if (csv && byte === QUOTE && (quoted || starts)) quoted = !quoted; // a doubled quote closes and opens
    else if (!quoted && byte === NEWLINE) yield n + 1;
    starts = csv && (SEPARATORS.has(byte) || (starts && byte === SPACE) || (!quoted && byte === QUOTE));
  }
}

function lines(bytes) {
  let count = 0;
  for (const byte of bytes) if (byte === NEWLINE) count += 1;
  return count;
}

async function opened(file) {
  // The file as it is; UTF-16, as spreadsheets write it, as UTF-8, which can be cut.
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const wide = first === 255 && second === 254 ? "utf-16le" : first === 254 && second === 255 ? "utf-16be" : null;
  return wide ? new Blob([new TextDecoder(wide).decode(await file.arrayBuffer())]) : file;
}

async function begin(file) {
  const json = /\.(jsonl|ndjson)$/i.test(file.name);
  const blob = await opened(file);
  const found = { blob, csv: !json, at: 0, line: 1, header: new Uint8Array(), created: 0, exists: 0, refused: 0 };
  if (json) return found;
  const start = new Uint8Array(await blob.slice(0, 65536).arrayBuffer());
  const places = ends(start, true);
  let end = places.next().value ?? start.length;
  if (/^(\ufeff)?"?sep=/i.test(new TextDecoder().decode(start.slice(0, 16)))) end = places.next().value ?? end;
  return { ...found, at: end, line: 1 + lines(start.slice(0, end)), header: start.slice(0, end) };
}

async function piece() {
  // The next whole records; a record may be as long as a request.
  for (let size = PIECE; ; size *= 2) {
    const bytes = new Uint8Array(await state.blob.slice(state.at, state.at + size).arrayBuffer());
    if (state.at + bytes.length >= state.blob.size) return bytes;
    let end = 0;
    for (const place of ends(bytes, state.csv)) end = place;
    if (end) return bytes.slice(0, end);
    if (size > Number(upload.dataset.most)) throw new Error(`line ${state.line}: this row is longer than the server takes`);
  }
}

async function post(bytes) {
  const asked = new URLSearchParams({ line: state.line });
  if (ids.value === "column") asked.set("id", column.value);
  if (ids.value === "hash") asked.set("hash_ids", "true");
  const path = `/v1/streams/${encodeURIComponent(upload.dataset.stream)}/upload?${asked}`;
  const headers = { "content-type": state.csv ? "text/csv" : "application/x-ndjson" };
  for (let tries = 1; ; tries += 1) {
    const answer = await fetch(path, { method: "POST", headers, body: new Blob([state.header, bytes]) }).catch(() => null);
    const told = await answer?.json().catch(() => null);
    if (answer?.status === 401) return location.reload();
    if (answer?.ok && told) return told;
    const later = answer === null || told?.error?.retryable;
    if (!later || tries === TRIES) throw new Error(told?.error?.message ?? "the server cannot be reached");
    said.textContent = "waiting for the server…";
    const seconds = Number(answer?.headers.get("retry-after")) || tries;
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  }
}

function list(refused) {
  const box = document.getElementById("refused");
  box.hidden = false;
  const body = box.querySelector("tbody");
  for (const row of refused.slice(0, LISTED - body.rows.length)) {
    const line = body.insertRow();
    for (const text of [row.line, row.id ?? "–", row.why]) line.insertCell().textContent = text;
  }
  const more = state.refused - body.rows.length;
  document.getElementById("more-refused").textContent = more > 0 ? `and ${more.toLocaleString("en")} more` : "";
}

function report(done) {
  const parts = [`${state.created.toLocaleString("en")} items added`];
  if (state.exists) parts.push(`${state.exists.toLocaleString("en")} ${state.exists === 1 ? "was" : "were"} there already`);
  if (state.refused) parts.push(`${state.refused.toLocaleString("en")} ${state.refused === 1 ? "row" : "rows"} refused`);
  said.textContent = `${done ? "Done: " : ""}${parts.join(", ")}`;
  bar.value = state.blob.size ? state.at / state.blob.size : 1;
}

upload.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  bar.hidden = false;
  said.textContent = "sending…";
  try {
    if (state === null) {
      document.getElementById("refused").hidden = true;
      document.querySelector("#refused tbody").replaceChildren();
      state = await begin(document.getElementById("file").files[0]);
    }
    while (state.at < state.blob.size) {
      const bytes = await piece();
      const told = await post(bytes);
      if (!told) return;
      state.created += told.created;
      state.exists += told.exists;
      state.refused += told.refused.length;
      state.at += bytes.length;
      state.line += lines(bytes);
      if (told.refused.length) list(told.refused);
      report(false);
    }
    report(true);
    state = null;
    button.textContent = "Send";
  } catch (error) {
    const begun = state !== null && state.created + state.exists + state.refused > 0;
    const changed = error.name === "NotReadableError";
    said.textContent = `${begun ? "Stopped: " : "Nothing was sent: "}${changed ? "the file has changed, choose it again" : error.message}`;
    if (changed) document.getElementById("file").value = "";
    if (begun && !changed) button.textContent = "Continue";
    else state = null;
  } finally {
    button.disabled = false;
  }
});
