// Shows one release, and looks again every two seconds. All text goes in as text, never as HTML.
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
  return `${primary.name}: champion ${range(primary.arms[0])}, challenger ${range(primary.arms[1])}, ` +
    `difference ${range(primary.difference)} in ${primary.pairs} pairs.`;
}

// Users and keys that send far more tests or votes than others, and what does not count for that.
function senders(arm) {
  const primary = arm.primary || { outliers: {}, outlying_keys: {}, left_out: {} };
  const left = Object.keys(primary.left_out).length ? primary.left_out : arm.left_out;
  const lines = (counts, text) => Object.entries(counts).slice(0, 3).map(([who, count]) => text(who, count));
  return [
    ...lines(primary.outliers, (who, count) => `User ${who} sent ${count} values, far more than others; each user counts once.`),
    ...lines(primary.outlying_keys, (who, count) => `API key ${who} sent ${count} values, far more than others.`),
    ...lines(left, (who, count) => `API key ${who}: ${count} more users do not count.`),
  ];
}

// One challenger: its guardrails, quality and decision.
function challenger(arm, several, open) {
  const made = $("arm").content.cloneNode(true).firstElementChild;
  const part = (name) => made.querySelector(`.${name}`);
  const share = arm.share ? `${number(100 * arm.share)} % of the requests` : "dropped";
  part("name").textContent = `Version ${arm.version}: ${share}`;
  part("name").hidden = !several;
  part("guardrails").replaceChildren(...arm.guardrails.map(guardrail));
  part("quality").textContent = quality(arm.primary) +
    (arm.sample_ratio_p_value < 0.001 ? " The versions did not get their shares of the traffic." : "");
  part("senders").replaceChildren(...senders(arm).map((line) => element("li", line)));
  part("decision").textContent = `Decision ${open ? "by now" : "when it ended"}: ${arm.decision.kind}`;
  part("reasons").replaceChildren(...arm.decision.reasons.map((reason) => element("li", reason)));
  return made;
}

function show(view) {
  const ended = ["aborted", "undecided", "rolled_back"].includes(view.state);
  const open = ["running", "paused"].includes(view.state);
  const several = view.challengers.length > 1;
  $("title").textContent = `Version${several ? "s" : ""} ${view.challengers.join(", ")} beside version ${view.champion}, ${view.strategy}`;
  $("state").textContent = words(view.state);
  $("state").className = view.state;
  $("steps").replaceChildren(...view.steps.map((step) => {
    const title = step.title.replaceAll(", ", "\n");
    const made = element("li", title, step.state === "now" && ended ? "stopped" : step.state);
    made.append(element("small", `${step.pairs} pairs; ${step.units.join(" + ")} users or requests`));
    return made;
  }), element("li", "all", view.state === "promoted" ? "done" : "next"));
  $("moves").hidden = !open;
  for (const button of $("moves").children) {
    button.hidden = button.dataset.move === (view.state === "paused" ? "pause" : "resume");
  }
  $("waiting").textContent = view.waiting ? `This step ${view.waiting}.` : "";
  if (view.state === "paused") $("waiting").textContent = "It stays at this step, and its guardrails still roll it back.";
  $("arms").replaceChildren(...view.arms.map((arm) => challenger(arm, several, open)));
  if (!view.arms.length) $("arms").append(...view.decision.reasons.map((reason) => element("p", reason)));
  $("requests").textContent = `${view.requests} requests.`;
  $("events").replaceChildren(...view.events.map((event) => {
    const made = element("li");
    const time = element("time", event.time.slice(0, 19).replace("T", " "));
    time.dateTime = event.time;
    made.append(time, element("b", words(event.kind)), ` ${event.reasons.join(" ")}`);
    return made;
  }));
}

class KeyNeeded extends Error {}

async function fetched(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, { ...options, headers });
  if ([401, 403].includes(response.status)) throw new KeyNeeded(key ? "This is not an operator's key." : "");
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

let looking = false;

async function look() {
  if (looking || (!$("entry").hidden && !sessionStorage.getItem(KEY))) return; // a key is being typed
  looking = true;
  try {
    const all = await fetched("/releases");
    $("none").hidden = all.length > 0;
    $("shown").hidden = all.length === 0;
    const chosen = $("which").value || (all[0] && all[0].id);
    $("which").replaceChildren(...all.map((each) => {
      const versions = each.challengers.join(", ");
      const made = element("option", `${each.id}: version ${versions}, ${words(each.state)}`);
      made.value = each.id;
      return made;
    }));
    if (chosen) {
      $("which").value = chosen;
      show(await fetched(`/releases/${encodeURIComponent(chosen)}`));
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
  } finally {
    looking = false;
  }
}

// A person moves the release that is shown; an abort is asked about.
async function move(event) {
  const name = event.target.dataset.move;
  if (!name || (name === "abort" && !confirm("End the release? All requests go to the champion."))) return;
  const path = `/releases/${encodeURIComponent($("which").value)}/${name}`;
  try {
    await fetched(path, { method: "POST", body: JSON.stringify({ reason: `${name} on the page` }) });
  } catch (error) {
    $("trouble").textContent = `The release was not changed (${error.message}).`;
    $("trouble").hidden = false;
    return;
  }
  look();
}

$("moves").addEventListener("click", move);
$("which").addEventListener("change", look);
$("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("key").value = "";
  look();
});
look();
setInterval(look, EVERY_MS);
