// Whether probabilities were true: the reliability diagram, its numbers, and the Brier score.

import { $, count, make, number, percent, say, share, spell } from "/write.js";

const NS = "http://www.w3.org/2000/svg";
const [LEFT, TOP, SIZE] = [50, 10, 260];

function add(parent, name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const across = (value) => LEFT + value * SIZE;
const up = (value) => TOP + (1 - value) * SIZE;

/** What happened over what was predicted: on the diagonal where both are the same. A dot's area is its number of labels. */
function draw(svg, bins) {
  const most = Math.max(...bins.map((each) => each.labelled));
  svg.replaceChildren();
  svg.setAttribute("aria-label", `Share observed, by probability predicted: ${bins.map((each) => `${share(each.predicted)} was ${share(each.observed)}`).join(", ")}`);
  for (const value of [0, 0.5, 1]) {
    add(svg, "line", { class: "grid", x1: across(0), x2: across(1), y1: up(value), y2: up(value) });
    add(svg, "line", { class: "grid", x1: across(value), x2: across(value), y1: up(0), y2: up(1) });
    add(svg, "text", { x: LEFT - 6, y: up(value) + 4, "text-anchor": "end" }, share(value));
    add(svg, "text", { x: across(value), y: up(0) + 16, "text-anchor": value === 1 ? "end" : value ? "middle" : "start" }, share(value));
  }
  add(svg, "text", { x: across(0.5), y: up(0) + 32, "text-anchor": "middle" }, "predicted");
  add(svg, "text", { x: across(0) + 6, y: up(1) + 14 }, "observed");
  const group = add(svg, "g", { class: "plain-line" });
  add(group, "path", { class: "dashed", d: `M${across(0)} ${up(0)} L${across(1)} ${up(1)}` });
  const dots = add(svg, "g", { class: "labels" });
  for (const each of bins) {
    add(dots, "circle", { cx: across(each.predicted), cy: up(each.observed), r: 2 + 8 * Math.sqrt(each.labelled / most) });
  }
}

export function showReliability(status) {
  const found = status.probabilities;
  $("probable").hidden = !found;
  if (!found) return;
  const bins = found.bins.filter((each) => each.labelled);
  draw($("reliability"), bins);
  $("reliability-bins").replaceChildren(...bins.map((each) => {
    const head = make("th", "", `${each.low.toFixed(2)} to ${each.high.toFixed(2)}`);
    head.scope = "row";
    const cells = [percent(each.predicted, 1), percent(each.positive, each.labelled), count(each.labelled)];
    return make("tr", "", head, ...cells.map((cell) => make("td", "", cell)));
  }));
  const positive = status.worker.classes[0];
  say("probable-note",
    `Of the predictions with such a probability of ${spell(positive)}: their mean, and the share of their labels that were it. Brier score ${number(found.brier_score)} on ${count(found.labelled)} labelled; it would be ${number(found.brier_score_of_share)} had every probability been the share of all labels.`);
}
