// Shows pairs and sends choices. Whatever a model wrote goes into the page by textContent alone.
"use strict";
const token = new URLSearchParams(location.search).get("token") || "";
const at = (id) => document.getElementById(id);
const KEYS = { ArrowLeft: "left", "1": "left", ArrowDown: "tie", "0": "tie", ArrowRight: "right", "2": "right" };
let judge = "";
let pair = null;
let busy = false;

async function ask(path, body) {
  const reply = await fetch(path, { method: "POST", headers: { "content-type": "application/json", "x-ratchet-token": token }, body: JSON.stringify(body) });
  if (reply.status === 409) return ask("/next", { judge }); // chosen already, in another window: go on
  const text = await reply.text();
  if (!reply.ok) throw new Error(text.startsWith("{") ? JSON.parse(text).error : text);
  return JSON.parse(text);
}

function trouble(text) {
  at("trouble").textContent = text;
  at("trouble").hidden = !text;
}

function show(state) {
  pair = state.pair;
  at("who").textContent = judge;
  at("count").textContent = `${state.done} of ${state.total}`;
  const bar = document.querySelector(".progress");
  bar.setAttribute("aria-valuemax", state.total);
  bar.setAttribute("aria-valuenow", state.done);
  bar.firstElementChild.style.width = `${(100 * state.done) / state.total}%`;
  for (const each of [at("who"), at("count"), bar]) each.hidden = false;
  at("enter").hidden = true;
  at("pair").hidden = at("choices").hidden = !pair;
  at("end").hidden = Boolean(pair);
  at("sum").textContent = `You judged ${state.done} ${state.done === 1 ? "pair" : "pairs"}.`;
  if (!pair) return;
  at("question").textContent = state.question;
  for (const name of ["statement", "left", "right"]) {
    at(name).textContent = pair[name];
    at(name).scrollTop = 0;
  }
  document.querySelector("main").scrollTop = 0;
}

async function during(work, what) {
  if (busy) return;
  busy = true;
  for (const button of document.querySelectorAll("button")) button.disabled = true;
  try {
    show(await work());
    trouble("");
  } catch (error) {
    trouble(error instanceof TypeError ? `The page's server does not answer, ${what}.` : error.message);
  }
  for (const button of document.querySelectorAll("button")) button.disabled = false;
  for (const card of document.querySelectorAll(".chosen")) card.classList.remove("chosen");
  busy = false;
}

function choose(chosen) {
  if (busy || !pair) return;
  if (chosen !== "tie") at(`card-${chosen}`).classList.add("chosen");
  during(() => ask("/choose", { judge, pair: pair.id, chosen }), "so this choice may not be kept: choose again in a moment");
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  judge = at("name").value.trim();
  if (judge) during(() => ask("/next", { judge }), "so try again in a moment");
});
at("choices").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) choose(button.dataset.chosen);
});
document.addEventListener("keydown", (event) => {
  if (!pair || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !KEYS[event.key]) return;
  if (event.key === "ArrowDown" && document.activeElement.tagName === "PRE") return; // it scrolls there
  event.preventDefault();
  choose(KEYS[event.key]);
});
