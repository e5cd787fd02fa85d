// Practice: items with known answers and feedback, before the first work. Nothing of it is a label.
"use strict";

const Practice = (() => {
  const page = document.getElementById("work");
  const banner = document.getElementById("practice");
  const lesson = document.getElementById("lesson");
  const feedback = document.getElementById("feedback");
  const onward = document.getElementById("onward");
  const path = `/v1/streams/${encodeURIComponent(page.dataset.stream)}/practice`;
  const passed = `venire.practised.${page.dataset.stream}.${page.dataset.labeler}`;
  let items = [];
  let place = 0;
  let right = 0;
  let answered = false;
  let finish = () => {};
  let show = () => {};

  function wanted() {
    if (page.dataset.practice === "0") return false;
    try {
      return localStorage.getItem(passed) !== page.dataset.practised;
    } catch {
      return true;
    }
  }

  async function begin(showItem, done) {
    items = (await Server.read(path)) ?? [];
    [place, right, finish, show] = [0, 0, done, showItem];
    if (items.length === 0) return done();
    banner.hidden = false;
    next();
  }

  function next() {
    answered = false;
    onward.hidden = true;
    feedback.replaceChildren();
    if (place === items.length) return over();
    lesson.textContent = `Practice ${place + 1} of ${items.length}: nothing of this is stored.`;
    show({ item: `practice ${place + 1}`, shown: items[place].shown, practice: true });
  }

  async function answer(said) {
    if (answered) return;
    answered = true;
    const reply = await Server.send(`${path}/${place}`, { said });
    const told = reply.ok ? await reply.json().catch(() => null) : null;
    if (told?.right) right += 1;
    const verdict = told?.right ? "Right." : `Not quite: it is “${told?.answer ?? "?"}”.`;
    feedback.replaceChildren(
      Draw.element("p", told?.right ? "right" : "wrong", verdict),
      Draw.markdown(told?.why ?? ""),
    );
    place += 1;
    onward.querySelector("span").textContent = place === items.length ? "finish" : "next";
    onward.hidden = false;
    onward.focus();
  }

  function over() {
    try {
      localStorage.setItem(passed, page.dataset.practised);
    } catch {
      // it is offered again
    }
    banner.hidden = true;
    const went = place > 0 ? `practice: ${right} of ${items.length} right` : "";
    items = [];
    finish(went);
  }

  onward.addEventListener("click", next);
  document.getElementById("no-practice").addEventListener("click", over);
  return { wanted, begin, answer, next, running: () => items.length > 0, waits: () => answered };
})();
