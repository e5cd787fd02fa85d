// Draws the parts of a payload that the server lays out. Payloads are data: text becomes text nodes,
// and of Markdown, which the server has made HTML of, only known tags and attributes are taken over.
"use strict";

const Draw = (() => {
  const IMAGE = /^(data:image\/(png|jpeg|gif|webp|avif);base64,|https?:\/\/)/i;
  const AUDIO = /^(data:audio\/[\w.+-]+;base64,|https?:\/\/)/i;
  const LINK = /^(https?:\/\/|mailto:)/i;
  const TAGS = new Set(
    ("A BLOCKQUOTE BR CODE EM H2 H3 H4 H5 H6 HR LI OL P PRE S STRONG TABLE TBODY TD TH THEAD TR " +
      "UL").split(" "),
  );
  const TALL = 1.5; // an image of more than this height for its width is as wide as its place
  const TINY = 200; // pixels: a smaller image is enlarged
  const ZOOMS = ["whole", "wide", "actual"];

  function element(tag, className = "", text = "") {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function markdown(html) {
    // A copy of what the server rendered, made of known tags alone.
    const read = new DOMParser().parseFromString(html, "text/html");
    const made = element("div", "markdown");
    made.append(...[...read.body.childNodes].flatMap(copied));
    return made;
  }

  function copied(node) {
    if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.data)];
    if (node.nodeType !== Node.ELEMENT_NODE) return [];
    const inside = [...node.childNodes].flatMap(copied);
    if (!TAGS.has(node.tagName)) return inside;
    const made = node.tagName === "PRE" ? code() : document.createElement(node.tagName);
    if (node.hasAttribute("dir")) made.dir = "auto";
    if (node.tagName === "A" && LINK.test(node.getAttribute("href") ?? "")) {
      made.href = node.getAttribute("href");
      made.rel = "noopener noreferrer nofollow";
      made.target = "_blank";
    }
    if (node.tagName === "OL" && /^\d+$/.test(node.getAttribute("start") ?? "")) {
      made.start = Number(node.getAttribute("start"));
    }
    made.append(...inside);
    return [made];
  }

  function code(text = "") {
    // Its lines are not wrapped, which would change what they say: it scrolls, with the keyboard too.
    const made = element("pre", "", text);
    made.tabIndex = 0;
    return made;
  }

  function text(part) {
    const made = element("div", "text");
    made.dir = "auto";
    if (!part.pieces) made.textContent = part.text;
    for (const [piece, marked] of part.pieces ?? []) {
      made.append(marked ? element("mark", "", piece) : document.createTextNode(piece));
    }
    return made;
  }

  function table(part) {
    const made = element("table", "fields");
    for (const [name, value] of part.rows ?? []) {
      const row = made.insertRow();
      const head = element("th", "", name);
      head.scope = "row";
      const cell = element("td", "text", value);
      head.dir = cell.dir = "auto";
      row.append(head, cell);
    }
    const wide = element("div", "wide");
    wide.append(made);
    return wide;
  }

  function failed(kind, address) {
    return element("p", "wrong", `The ${kind} cannot be shown: ${address.slice(0, 200)}`);
  }

  function image(part, item) {
    if (!IMAGE.test(part.text)) return failed("image", part.text);
    const frame = element("figure", "image");
    const box = element("div", "box");
    const picture = document.createElement("img");
    const button = element("button", "zoom");
    button.type = "button";
    frame.dataset.zoom = "whole";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "the image; scrolls where it is larger than its place");
    picture.alt = `image of ${item}`;
    picture.addEventListener("load", () => {
      const { naturalWidth: width, naturalHeight: height } = picture;
      if (Math.max(width, height) <= TINY) frame.classList.add("tiny");
      else if (height > TALL * width) zoomTo(frame, "wide");
    });
    picture.addEventListener("error", () => frame.replaceWith(failed("image", part.text)));
    const key = element("kbd", "", Classes.many ? "⇧z" : "z");
    key.setAttribute("aria-hidden", "true");
    button.append(key, " ", element("span"));
    button.setAttribute("aria-keyshortcuts", Classes.many ? "Shift+z" : "z");
    button.addEventListener("click", () => zoom(frame));
    zoomTo(frame, "whole", button);
    picture.src = part.text;
    box.append(picture);
    frame.append(button, box);
    return frame;
  }

  function zoomTo(frame, how, button = frame.querySelector("button")) {
    frame.dataset.zoom = how;
    button.querySelector("span").textContent = `zoom: ${how}`;
  }

  function zoom(frame) {
    zoomTo(frame, ZOOMS[(ZOOMS.indexOf(frame.dataset.zoom) + 1) % ZOOMS.length]);
  }

  function audio(part, item) {
    if (!AUDIO.test(part.text)) return failed("audio", part.text);
    const made = element("audio");
    made.controls = true;
    made.preload = "auto";
    made.setAttribute("aria-label", `audio of ${item}`);
    made.addEventListener("error", () => made.replaceWith(failed("audio", part.text)));
    made.src = part.text;
    return made;
  }

  const KINDS = {
    text,
    table,
    image,
    audio,
    code: (part) => code(part.text),
    markdown: (part) => markdown(part.text),
  };

  function part(shown, item) {
    const made = element("section", `part ${shown.kind in KINDS ? shown.kind : "text"}-part`);
    if (shown.title) made.append(element("h2", "", shown.title));
    made.append((KINDS[shown.kind] ?? text)(shown, item));
    return made;
  }

  function parts(shown, item) {
    // The parts in order; one that stands beside the one before it shares a row with it.
    const made = [];
    for (const one of shown) {
      const drawn = part(one, item);
      const last = made.at(-1);
      if (one.beside && last?.classList.contains("row")) last.append(drawn);
      else if (one.beside && last) {
        const row = element("div", "row");
        made.splice(-1, 1, row);
        row.append(last, drawn);
      } else made.push(drawn);
    }
    if (made.length === 1 && shown[0].kind === "text" && !shown[0].title) made[0].classList.add("alone");
    return made;
  }

  function excerpt(shown) {
    // The beginning of a payload, in a line.
    const words = shown.map((one) => {
      if (one.kind === "markdown") return markdown(one.text).textContent;
      return one.kind === "text" || one.kind === "code" ? one.text : one.kind;
    });
    return words.join(" ").replace(/\s+/g, " ").slice(0, 80);
  }

  function zoomIn(place) {
    const frame = place.querySelector("figure.image");
    if (frame !== null) zoom(frame);
  }

  function play(place) {
    const made = place.querySelector("audio");
    if (made?.paused) made.play();
    else made?.pause();
  }

  return { parts, markdown, excerpt, zoomIn, play, element };
})();
