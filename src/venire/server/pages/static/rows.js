// Lists of records as tables: a row for each, beside the JSON that is saved. Each follows the other.
"use strict";

function input(column, value, changed) {
  const made = document.createElement(column.kind === "choice" ? "select" : "input");
  if (column.kind === "choice") {
    made.append(...column.options.map((name) => new Option(name, name)));
    made.value = value ?? column.options[0];
  } else if (column.kind === "flag") {
    made.type = "checkbox";
    made.checked = value ?? column.value === "true";
  } else {
    made.type = column.kind === "number" ? "number" : "text";
    if (column.kind === "number") {
      made.step = "any";
      if (column.least !== null) made.min = column.least;
      if (column.most !== null) made.max = column.most;
    }
    made.value = value ?? column.value;
  }
  made.setAttribute("aria-label", column.label);
  made.addEventListener("input", changed);
  return made;
}

function read(column, made) {
  // The value, or undefined where it is the one that is meant without it.
  if (column.kind === "flag") return made.checked === (column.value === "true") ? undefined : made.checked;
  if (column.kind === "number") return made.value === "" || made.value === column.value ? undefined : Number(made.value);
  return made.value === column.value && column.kind !== "choice" ? undefined : made.value;
}

function cell(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

const PREVIEWS = {
  costs(rows, box, columns) {
    // Truth in rows, verdict in columns.
    const names = columns[0].options;
    if (!rows.length || names.length > 12) return;
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    head.append(cell("td", "is, called"), ...names.map((name) => cell("th", name)));
    const body = table.createTBody(); // insertRow of the table would put it into its head
    for (const truth of names) {
      const line = body.insertRow();
      line.append(cell("th", truth), ...names.map((verdict) => {
        const told = rows.find((row) => row.truth === truth && row.verdict === verdict);
        return cell("td", truth === verdict ? "0" : String(told?.cost ?? 1));
      }));
    }
    box.append(cell("small", "What each error costs:"), table);
  },
  layout(rows, box) {
    if (!rows.length) return;
    const page = document.createElement("div");
    page.className = "page";
    let line = null;
    for (const row of rows) {
      if (!line || !row.beside) page.append((line = document.createElement("div")));
      const part = document.createElement("div");
      if (row.title) part.append(cell("strong", row.title));
      part.append(cell("span", `${row.field || "the whole payload"}${row.show && row.show !== "auto" ? `, as ${row.show}` : ""}`));
      line.append(part);
    }
    box.append(cell("small", "What labelers see:"), page);
  },
};

function editor(box) {
  const text = document.getElementById(box.dataset.rows);
  const columns = JSON.parse(box.dataset.columns);
  const map = columns.length === 2 && columns[0].name === "name";
  const table = document.createElement("table");
  const add = Object.assign(document.createElement("button"), { type: "button", textContent: "Add a row" });
  const preview = Object.assign(document.createElement("div"), { className: "preview" });
  const wide = Object.assign(document.createElement("div"), { className: "wide" });
  wide.append(table);
  box.append(wide, add, preview);
  let rows = [];

  function show() {
    preview.replaceChildren();
    PREVIEWS[text.name]?.(rows, preview, columns);
  }

  function write() {
    rows = [...table.tBodies[0].rows].map((line) => {
      const made = columns.map((column, n) => [column.name, read(column, line.cells[n].firstChild)]);
      return Object.fromEntries(made.filter(([, value]) => value !== undefined));
    });
    const lines = map ? rows.map((row) => `${JSON.stringify(row.name ?? "")}: ${JSON.stringify(row.text ?? "")}`) : rows.map((row) => JSON.stringify(row));
    const [open, close] = map ? "{}" : "[]";
    text.value = lines.length ? `${open}\n ${lines.join(",\n ")}\n${close}` : open + close;
    show();
  }

  function insert(record) {
    const line = table.tBodies[0].insertRow();
    for (const column of columns) line.insertCell().append(input(column, record[column.name], write));
    const drop = Object.assign(document.createElement("button"), { type: "button", textContent: "Remove" });
    drop.addEventListener("click", () => { line.remove(); write(); });
    line.insertCell().append(drop);
    return line;
  }

  function draw() {
    let found = null;
    try { found = JSON.parse(text.value || "null"); } catch { return; } // it is being written
    rows = map ? Object.entries(found ?? {}).map(([name, said]) => ({ name, text: said })) : Array.isArray(found) ? found : [];
    table.replaceChildren();
    const head = table.createTHead().insertRow();
    head.append(...columns.map((column) => cell("th", column.label)), cell("th", "actions"));
    table.append(document.createElement("tbody"));
    rows.forEach(insert);
    show();
  }

  add.addEventListener("click", () => {
    const line = insert({});
    write();
    line.querySelector("input, select").focus();
  });
  text.addEventListener("input", draw);
  form.addEventListener("reset", () => setTimeout(draw));
  draw();
}

document.querySelectorAll("[data-rows]").forEach(editor);
