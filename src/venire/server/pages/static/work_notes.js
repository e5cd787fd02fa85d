// Comments and flags, and the last ten answers: those not sent yet can be changed, the others looked at.
"use strict";

const Notes = (() => {
  const KEPT = 10;
  const page = document.getElementById("work");
  const dialog = document.getElementById("talk");
  const words = document.getElementById("talk-text");
  const list = document.getElementById("answers");
  const box = document.getElementById("recent");
  const kept = `venire.recent.${page.dataset.stream}.${page.dataset.labeler}`;
  let talking = null; // {work, kind, tell}
  let answers = []; // the last ones, oldest first: {work, said, state, excerpt}

  function open(work, kind, tell, look = false) {
    talking = { work, kind, tell };
    document.getElementById("talk-title").textContent =
      kind === "flag" ? `Flag ${work.item}: what is wrong with it?` : `Comment on ${work.item}`;
    document.getElementById("talk-item").replaceChildren(
      ...(look && work.shown ? Draw.parts(work.shown, work.item) : []),
    );
    words.value = "";
    dialog.returnValue = "cancel";
    dialog.showModal();
    words.focus();
  }

  async function closed() {
    const { work, kind, tell } = talking;
    talking = null;
    const text = words.value.trim();
    if (dialog.returnValue !== "send" || (kind === "comment" && !text)) return;
    tell(kind === "flag" ? "flagged" : "comment sent");
    const reply = await Server.send(`/v1/assignments/${work.token}/note`, { kind, text });
    if (!reply.ok) tell(`the ${kind} was refused: ${await Server.fault(reply)}`);
  }

  function entry(answer, change, tell) {
    const line = document.createElement("li");
    const said = answer.said === null ? "not sure" : answer.said;
    const button = Draw.element("button", "link", answer.state === "held" ? "change" : "look");
    button.type = "button";
    button.setAttribute("aria-label", `${button.textContent} the answer “${said}” to ${answer.work.item}`);
    button.addEventListener("click", () => {
      if (answer.state === "held") change(answer);
      else open(answer.work, "comment", tell, true);
    });
    const about = Draw.element("bdi", "quiet", answer.excerpt);
    line.append(Draw.element("strong", "", said), " ", about, " ", button);
    return line;
  }

  function draw(change, tell) {
    box.hidden = answers.length === 0;
    list.replaceChildren(...answers.map((one) => entry(one, change, tell)).reverse());
    const plain = answers.map(({ work, said, excerpt, state }) => ({
      work: { item: work.item, token: work.token, took: work.took }, said, excerpt, state,
    }));
    try {
      sessionStorage.setItem(kept, JSON.stringify(plain));
    } catch {
      // no room, or not allowed: the list is forgotten with the page
    }
  }

  function restore() {
    try {
      answers = JSON.parse(sessionStorage.getItem(kept) ?? "[]");
    } catch {
      answers = [];
    }
  }

  function left() {
    // Answers of which it is not known that the server has them.
    const unsure = answers.filter((one) => one.state !== "sent");
    for (const one of unsure) one.state = "held";
    return unsure;
  }

  dialog.addEventListener("close", closed);
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) dialog.close("send");
  });
  restore();
  return {
    open,
    draw,
    add: (answer) => (answers = [...answers, answer].slice(-KEPT)),
    remove: (answer) => (answers = answers.filter((one) => one !== answer)),
    left, // by a page that went away
    isOpen: () => dialog.open,
    KEPT,
  };
})();
