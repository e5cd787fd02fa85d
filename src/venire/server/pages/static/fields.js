// The fields of the form of settings: their values, what was changed, and what is wrong beside each.
"use strict";

const form = document.getElementById("settings");
const said = document.getElementById("said");
const fields = [...form.querySelectorAll("[data-kind]")];
const initial = new Map(fields.map((field) => [field.name, field.value]));
const hints = new Map(fields.map((field) => [field.name, hint(field).textContent]));

function hint(field) { return document.getElementById(field.getAttribute("aria-describedby")); }

function valueOf(field) {
  const { value, dataset: { kind } } = field;
  if (kind === "number") return value.trim() === "" ? null : Number(value);
  if (kind === "flag") return value === "true";
  if (kind === "list") return value.split("\n").map((line) => line.trim()).filter(Boolean);
  return kind === "json" ? JSON.parse(value || "null") : value;
}

function tell(field, fault) {
  hint(field).textContent = fault ?? hints.get(field.name);
  hint(field).classList.toggle("wrong", Boolean(fault));
  field.setAttribute("aria-invalid", String(Boolean(fault)));
  for (let box = fault && field.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
}

function changes() {
  // A part of an object is sent with the whole of it; an object whose parts are all empty is none.
  const found = {};
  for (const field of fields.filter((one) => "always" in one.dataset || one.value !== initial.get(one.name))) {
    const [name, part] = field.name.split(".");
    if (!part) found[name] = valueOf(field);
    else {
      const parts = fields.filter((one) => one.name.startsWith(`${name}.`));
      const whole = Object.fromEntries(parts.map((one) => [one.name.split(".")[1], valueOf(one)]));
      found[name] = Object.values(whole).every((value) => value === null) ? null : whole;
    }
  }
  return found;
}

function about(where) {
  const of = (name) => where === name || where.startsWith(`${name}.`);
  return fields.find((one) => of(one.name)) ?? fields.find((one) => one.name.split(".")[0] === where.split(".")[0]);
}

function named(message) {
  // The field that a message speaks of, if it was changed.
  const words = new Set(message.match(/[a-z_]+/g));
  return fields.find((one) => words.has(one.name) && ("always" in one.dataset || one.value !== initial.get(one.name)));
}

function blame(error, done = "saved") {
  // The field that a fault is about, or the only one that was changed; else it is said beside the button.
  const edited = fields.filter((one) => one.value !== initial.get(one.name));
  const only = edited.length === 1 ? edited[0] : undefined;
  const faults = error?.faults ?? (error ? [{ where: "", message: error.message }] : []);
  const told = faults.map(({ where, message }) => {
    const field = about(where.replace(/^body\.?/, "")) ?? named(message) ?? only;
    const [, row, part] = /\.(\d+)(?:\.(\w+))?$/.exec(where) ?? [];
    if (field) tell(field, row ? `row ${Number(row) + 1}${part ? `, ${part}` : ""}: ${message}` : message);
    return field;
  }).filter(Boolean);
  told[0]?.focus();
  said.textContent = told.length ? `nothing was ${done}: see the fields` : `nothing was ${done}: ${error?.message ?? "the server cannot be reached"}`;
}

function readable() {
  // Whether all that is JSON can be read; if not it is said.
  fields.forEach((field) => tell(field, null));
  for (const field of fields.filter((one) => one.dataset.kind === "json")) {
    try { valueOf(field); } catch (error) {
      tell(field, `this is not JSON: ${error.message}`);
      field.focus();
      return false;
    }
  }
  return true;
}

form.addEventListener("reset", () => { fields.forEach((field) => tell(field, null)); said.textContent = ""; });
