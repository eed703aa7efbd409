// Shows one rollout, and looks again every two seconds. All text goes in as text, never as HTML.
"use strict";
const EVERY_MS = 2000;
const KEY = "ratchet-key";
const $ = (id) => document.getElementById(id);
const words = (kind) => kind.replace("_", " ");

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const number = (value) => {
  if (value !== 0 && Math.abs(value) < 1e-3) return Number(value).toExponential(1);
  return String(Number(Number(value).toPrecision(3)));
};
const range = (pair) => (pair ? `${number(pair[0])} to ${number(pair[1])}` : "–");

// The interval of a difference, zero as a line, the tolerated difference dashed.
function interval(row) {
  const space = "http://www.w3.org/2000/svg";
  const reach = Math.max(Math.abs(row.low), Math.abs(row.high), row.margin) * 1.1 || 1;
  const at = (value) => 50 + (50 * value) / reach;
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 100 12");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `difference ${range([row.low, row.high])}, tolerated ${number(row.margin)}`);
  const draw = (name, kind, attributes) => {
    const made = document.createElementNS(space, name);
    made.setAttribute("class", kind);
    made.setAttribute("vector-effect", "non-scaling-stroke");
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    svg.append(made);
  };
  draw("rect", "bar", { x: at(row.low), y: 4, width: Math.max(0.5, at(row.high) - at(row.low)), height: 4 });
  draw("line", "zero", { x1: 50, x2: 50, y1: 0, y2: 12 });
  draw("line", "margin", { x1: at(row.margin), x2: at(row.margin), y1: 0, y2: 12 });
  return svg;
}

function guardrail(row) {
  const line = element("tr", undefined, row.p_value <= row.level ? "breached" : "");
  line.append(element("td", row.name), element("td", range(row.arms[0])), element("td", range(row.arms[1])));
  const cell = element("td", row.pairs ? undefined : "–");
  if (row.pairs) cell.append(interval(row), element("small", range([row.low, row.high])));
  line.append(cell, element("td", number(row.margin)));
  line.append(element("td", row.pairs ? `${number(row.p_value)} (level ${number(row.level)})` : "–"));
  line.append(element("td", row.pairs));
  return line;
}

function quality(primary) {
  if (!primary) return "Quality is not measured: no request carries tests, and nobody votes.";
  const stuffers = Object.keys(primary.outliers).length;
  return `${primary.name}: difference ${range(primary.difference)} in ${primary.pairs} pairs.` +
    (stuffers ? ` ${stuffers} user(s) vote far more than others; each counts once.` : "");
}

function show(view) {
  const ended = ["aborted", "rolled_back"].includes(view.state);
  $("title").textContent = `Version ${view.challenger} beside version ${view.champion}, ${view.strategy}`;
  $("state").textContent = words(view.state);
  $("state").className = view.state;
  $("steps").replaceChildren(...view.steps.map((step) => {
    const made = element("li", step.title, step.state === "now" && ended ? "stopped" : step.state);
    made.append(element("small", `${step.pairs} pairs; ${step.units[0]} + ${step.units[1]} users or requests`));
    return made;
  }), element("li", "all", view.state === "promoted" ? "done" : "next"));
  $("waiting").textContent = view.waiting ? `This step ${view.waiting}.` : "";
  $("guardrails").replaceChildren(...view.guardrails.map(guardrail));
  $("quality").textContent = `${view.requests} requests. ${quality(view.primary)}` +
    (view.sample_ratio_p_value < 0.001 ? " The versions did not get their shares of the traffic." : "");
  $("decision").textContent = view.decision.kind;
  $("reasons").replaceChildren(...view.decision.reasons.map((reason) => element("li", reason)));
  $("events").replaceChildren(...view.events.map((event) => {
    const made = element("li");
    const time = element("time", event.time.slice(0, 19).replace("T", " "));
    time.dateTime = event.time;
    made.append(time, element("b", words(event.kind)), ` ${event.reasons.join(" ")}`);
    return made;
  }));
}

class KeyNeeded extends Error {}

async function fetched(path) {
  const key = sessionStorage.getItem(KEY);
  const response = await fetch(path, key ? { headers: { Authorization: `Bearer ${key}` } } : {});
  if ([401, 403].includes(response.status)) throw new KeyNeeded(key ? "This is not an operator's key." : "");
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

async function look() {
  if (!$("entry").hidden && !sessionStorage.getItem(KEY)) return; // a key is being typed
  try {
    const all = await fetched("/rollouts");
    $("none").hidden = all.length > 0;
    $("shown").hidden = all.length === 0;
    const chosen = $("which").value || (all[0] && all[0].id);
    $("which").replaceChildren(...all.map((each) => {
      const made = element("option", `${each.id}: version ${each.challenger}, ${words(each.state)}`);
      made.value = each.id;
      return made;
    }));
    if (chosen) {
      $("which").value = chosen;
      show(await fetched(`/rollouts/${encodeURIComponent(chosen)}`));
    }
    $("entry").hidden = true;
    $("trouble").hidden = true;
  } catch (error) {
    const asks = error instanceof KeyNeeded;
    if (asks) {
      sessionStorage.removeItem(KEY);
      $("shown").hidden = $("none").hidden = true;
      $("which").replaceChildren();
      $("state").textContent = "";
    }
    $("entry").hidden = !asks;
    $("trouble").textContent = asks ? error.message : `The gateway does not answer (${error.message}).`;
    $("trouble").hidden = !$("trouble").textContent;
  }
}

$("which").addEventListener("change", look);
$("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("key").value = "";
  look();
});
look();
setInterval(look, EVERY_MS);
