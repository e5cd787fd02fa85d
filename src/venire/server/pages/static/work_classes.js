// The classes to choose from: nine by their digits, any number by typing a part of the name.
"use strict";

const Classes = (() => {
  const box = document.getElementById("choices");
  const filter = document.getElementById("filter");
  const buttons = [...box.querySelectorAll("button")];
  const many = filter !== null;
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const names = new Map(buttons.map((button) => [button, plain(button.dataset.said)]));
  let shown = buttons; // in the order of the digits

  function rank(button, words) {
    // 0: the name begins with it, 1: a word of it does, 2: it is somewhere; -1: nowhere.
    const name = names.get(button);
    if (name.startsWith(words)) return 0;
    if (name.split(/[\s_/-]+/).some((word) => word.startsWith(words))) return 1;
    return name.includes(words) ? 2 : -1;
  }

  function found(words) {
    const ranked = buttons.map((button) => [rank(button, words), button]);
    return ranked.filter(([r]) => r >= 0).sort((a, b) => a[0] - b[0]).map(([, button]) => button);
  }

  function apply() {
    const words = plain(filter?.value.trim() ?? "");
    shown = words ? found(words) : buttons;
    box.replaceChildren(...shown);
    shown.forEach((button, n) => {
      button.querySelector("kbd").textContent = n < 9 ? String(n + 1) : "";
      if (n < 9) button.setAttribute("aria-keyshortcuts", String(n + 1));
      else button.removeAttribute("aria-keyshortcuts");
      button.classList.toggle("first", Boolean(words) && n === 0);
    });
    if (many) document.getElementById("matches").textContent = words ? `${shown.length} match` : "";
  }

  function clear() {
    if (!many) return;
    filter.value = "";
    apply();
    if (document.activeElement === filter) filter.blur();
  }

  function begins(text) {
    // Whether typing this would still match: else a digit in the filter chooses a class.
    return found(plain(filter.value.trim() + text)).length > 0;
  }

  filter?.addEventListener("input", apply);
  if (many) apply();
  return { buttons, filter, many, clear, begins, at: (n) => shown[n], first: () => shown[0] };
})();
