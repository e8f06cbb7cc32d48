// The status page: asks /api/status every two seconds and shows the answer. Whatever comes from the stream
// (names, ids, classes) is set as text, never as markup.

import { chart } from "/chart.js";

const EVERY_MS = 2000;
const POINTS = 60;
const $ = (id) => document.getElementById(id);

// --- how things are written ---------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en");
const figures = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const count = (value) => whole.format(value);

function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size === 0 || (size < 1e9 && size >= 1e-4)) return figures.format(value);
  const [digits, power] = value.toExponential(2).split("e");
  return `${digits} × 10^${Number(power)}`;
}

const percent = (part, all) => (all ? `${(part / all * 100).toFixed(1)} %` : "–");
const share = (value) => `${+(value * 100).toFixed(1)} %`;
const spell = (label) => (typeof label === "string" ? label : label === null ? "nothing" : JSON.stringify(label));

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.round(seconds / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

/** The time of day, with the date where that is not today's. */
function time(seconds) {
  const at = new Date(seconds * 1000);
  const date = at.toDateString() === new Date().toDateString() ? {} : { dateStyle: "medium" };
  return at.toLocaleString("en-GB", { ...date, timeStyle: "medium" });
}

function list(numbers) {
  return numbers.length > 12 ? `${numbers.slice(0, 12).join(", ")} and ${numbers.length - 12} more` : numbers.join(", ");
}

// --- how things are made ------------------------------------------------------------------------------

function say(id, text) {
  const place = $(id);
  if (place.textContent !== text) place.textContent = text;
}

function make(name, look, ...content) {
  const made = document.createElement(name);
  if (look) made.className = look;
  made.append(...content);
  return made;
}

/** A bar from 0 to `value` of `most`; with `two` sides, from the middle. */
function bar(value, most, { two = false, bad = false } = {}) {
  const part = most > 0 && Number.isFinite(value) ? Math.min(1, Math.abs(value) / most) : 0;
  const fill = make("span", bad ? "bad" : "");
  const size = two ? part * 50 : part * 100;
  fill.style.setProperty("--size", `${size}%`);
  fill.style.setProperty("--from", `${two ? (value < 0 ? 50 - size : 50) : 0}%`);
  const made = make("div", two ? "bar two" : "bar", fill);
  made.setAttribute("aria-hidden", "true");
  return made;
}

function barRow(name, drawn, value, none = false) {
  const head = make("th", "", name);
  head.scope = "row";
  return make("tr", none ? "none" : "", head, make("td", "", drawn), make("td", "", value));
}

// --- the parts of the page ----------------------------------------------------------------------------

function showHead(status, worker) {
  say("learner", status.learner);
  say("state", worker.ready ? worker.state : worker.live ? `${worker.state}, not ready` : "not live");
  $("state").className = `pill ${worker.ready ? "ready" : worker.live ? "wait" : "dead"}`;
  const own = worker.partitions.map((each) => each.partition);
  const of = worker.partition_count;
  const scope = of === null || !own.length ? "no partition yet"
    : own.length === of ? (of === 1 ? "the only partition" : `all ${of} partitions`)
    : `partition${own.length === 1 ? "" : "s"} ${list(own)} of ${of}; other workers have the rest`;
  say("scope", `worker ${worker.slot}, ${scope}`);
  document.title = `${percent(status.mistakes, status.labelled)} mistakes · mistakebound`;
}

function showNotices(notices) {
  const now = notices.map((each) => `${each.level} ${each.text}`).join("\n");
  if ($("notices").dataset.said === now) return;
  $("notices").dataset.said = now;
  $("notices").replaceChildren(...notices.map((each) => make("li", `notice ${each.level}`, each.text)));
}

function showFigures(status, worker) {
  const fine = worker.history[0];
  const recent = { labelled: 0, mistakes: 0 };
  fine.at.forEach((at, place) => {
    if (at < worker.now - 60) return;
    recent.labelled += fine.labelled[place];
    recent.mistakes += fine.mistakes[place];
  });
  const majority = status.baselines.majority;
  const oldest = worker.partitions.map((each) => each.oldest_waiting_seconds).filter((each) => each !== null);
  const lag = Object.values(status.lag);
  const sum = (of) => lag.reduce((total, each) => total + each[of], 0);
  const checkpoint = worker.checkpoint;
  say("mistakes", count(status.mistakes));
  say("mistakes-of", status.labelled ? `in ${count(status.labelled)} labelled: ${percent(status.mistakes, status.labelled)}` : "no label yet");
  say("recent", percent(recent.mistakes, recent.labelled));
  say("recent-of", recent.labelled ? `${count(recent.mistakes)} in ${count(recent.labelled)}` : "no label yet");
  say("majority", percent(majority.mistakes, status.labelled));
  say("majority-of", `${count(majority.mistakes)} mistakes`);
  say("updates", count(status.updates));
  const bound = status.bounds.find((each) => each.of === "updates");
  const epoch = status.epoch ? `epoch ${status.epoch.number}` : "";
  say("updates-of", bound ? `${epoch}: ${count(bound.count)}${bound.holds ? " of at most" : ", above the bound"} ${number(bound.value)}` : epoch);
  say("waiting", count(status.waiting));
  const most = worker.max_delay_seconds === null ? "" : ` of ${duration(worker.max_delay_seconds)}`;
  say("waiting-of", oldest.length ? `oldest ${duration(Math.max(...oldest))}${most}` : "none");
  say("lag", lag.length ? count(sum("examples") + sum("labels")) : "–");
  say("lag-of", lag.length ? `examples ${count(sum("examples"))}, labels ${count(sum("labels"))}` : "not measured yet");
  say("checkpoint", checkpoint === null ? "none" : checkpoint.written_at === null ? "none yet" : duration(worker.now - checkpoint.written_at));
  say("checkpoint-of", checkpoint === null ? "switched off" : `${checkpoint.written_at === null ? "" : "ago; "}${count(checkpoint.pending_updates)} updates since`);
}

/** Buckets merged so that there are at most POINTS of them over the span. */
function merged(history, worker) {
  const kept = [600, 10800, 172800][[2, 60, 600].indexOf(history.seconds)] ?? 600;
  const to = worker.counted_at;
  const from = Math.max(to - kept, Math.min(history.at[0] ?? to, to - 30 * history.seconds));
  const seconds = Math.max(1, Math.ceil((to - from) / POINTS / history.seconds)) * history.seconds;
  const first = Math.floor(from / seconds) * seconds;
  const steps = [];
  for (let at = first; at < to; at += seconds) {
    steps.push({ at, examples: 0, labelled: 0, mistakes: 0, majority_mistakes: 0 });
  }
  history.at.forEach((at, place) => {
    const step = steps[Math.floor((at - first) / seconds)];
    if (!step) return;
    for (const name of ["examples", "labelled", "mistakes", "majority_mistakes"]) step[name] += history[name][place];
  });
  if (steps.length > 1 && to - steps[steps.length - 1].at < seconds) steps.pop(); // not over yet
  return { from: first, to: first + seconds * steps.length, seconds, steps: steps.filter((each) => each.at + seconds > worker.started_at) };
}

function showHistory(worker) {
  const chosen = Number(document.querySelector("#ranges :checked").value);
  const { from, to, seconds, steps } = merged(worker.history[chosen], worker);
  const middle = (step) => step.at + seconds / 2;
  const rate = (of) => steps.map((step) => [middle(step), step.labelled ? step[of] / step.labelled : null]);
  const pace = (of) => steps.map((step) => [middle(step), step[of] / seconds]);
  chart($("rate"), $("rate-legend"), {
    from, to, format: share, title: "Mistakes per label",
    series: [
      { name: "always the majority", look: "plain-line dashed", points: rate("majority_mistakes") },
      { name: "this learner", look: "mistaken", points: rate("mistakes") },
    ],
  });
  chart($("flow"), $("flow-legend"), {
    from, to, format: (value) => number(+value.toPrecision(3)), title: "Records per second",
    series: [
      { name: "examples predicted", look: "plain-line", points: pace("examples") },
      { name: "labels applied", look: "labels", points: pace("labelled") },
    ],
  });
  say("started", time(worker.started_at));
}

function showBounds(status, worker) {
  const made = status.bounds.map((bound) => {
    const what = bound.of === "updates" ? "Updates" : "Mistakes on predictions";
    const verdict = bound.holds ? `${count(bound.count)} of at most ${number(bound.value)}` : `${count(bound.count)}, above the bound ${number(bound.value)}`;
    const head = make("p", "", make("span", "", what), make("b", "", verdict));
    const note = bound.holds ? "" : " What was declared about the data does not hold.";
    return make("div", "bound", head, bar(bound.count, bound.value, { bad: !bound.holds }), make("small", "", `${bound.name}: ${bound.assumes}.${note}`));
  });
  if (!made.length) made.push(make("p", "", worker.no_bound ?? "Nothing measured yet."));
  $("bounds").replaceChildren(...made);
  const said = [];
  if (status.margin_upper_bound !== null) {
    const newest = worker.window_margin_upper_bound === null ? "" : `, or above ${number(worker.window_margin_upper_bound)} on the newest of them`;
    said.push(`No separator of length 1 has a margin above ${number(status.margin_upper_bound)} on the updates${newest}.`);
  }
  if (worker.declared_margin !== null) said.push(`Declared: ${number(worker.declared_margin)}.`);
  if (worker.partition_count > worker.partitions.length) said.push("Updates are counted over all workers, mistakes only here.");
  say("margin", said.join(" "));
}

function showOutcomes(id, counts, held, name) {
  const all = counts.consumed;
  const rows = Object.entries(counts).filter(([outcome]) => outcome !== "consumed").concat([[name, held]]);
  const bad = new Set(["conflict", "expired", "unmatched", "invalid", "evicted"]);
  $(id).replaceChildren(
    ...rows.map(([outcome, found]) => barRow(outcome.replaceAll("_", " "), bar(found, all, { bad: bad.has(outcome) }), count(found), !found)),
  );
}

function showWeights(hypothesis) {
  const top = hypothesis === null ? [] : hypothesis.top;
  const most = Math.max(0, ...top.map((each) => Math.abs(each.value)));
  const two = top.some((each) => each.value < 0);
  $("weights").replaceChildren(
    ...top.map((each) => barRow(each.name, bar(each.value, most, { two, bad: each.value < 0 }), number(each.value))),
  );
  const nothing = hypothesis === null ? "Nothing measured yet." : "Nothing learned yet: every weight has its initial value.";
  say("weights-note", top.length ? `${count(top.length)} of ${count(hypothesis.count)} ${hypothesis.what}.` : nothing);
}

function mistakeOf(told) {
  const most = Math.max(0, ...told.terms.map((each) => Math.abs(each.contribution ?? 0)));
  const head = make("summary", "",
    make("b", "", told.id),
    make("span", "", `predicted ${spell(told.predicted)}, was ${spell(told.label)}`),
    make("span", "", `partition ${told.partition}, ${time(told.at / 1000)}`));
  const rows = told.terms.map((each) => {
    const name = `${each.name} = ${number(each.value)}`;
    const known = each.contribution !== null;
    const drawn = known ? bar(each.contribution, most, { two: true, bad: each.contribution > 0 }) : "";
    return barRow(name, drawn, known ? number(each.contribution) : "–");
  });
  const notes = [];
  if (told.features > told.terms.length) notes.push(`${count(told.features - told.terms.length)} more features.`);
  if (told.offset) notes.push(`Threshold ${number(told.offset)}.`);
  notes.push(told.lead === null
    ? "This score was not taken apart: it is not a sum over the features, or there are too many of them."
    : told.lead > 0 ? `The wrong class was ahead by ${number(told.lead)}.`
    : told.lead < 0 ? `By then the right class was ahead by ${number(-told.lead)}.` : "Neither class was ahead.");
  return make("details", "", head, make("table", "bars", make("tbody", "", ...rows)), make("p", "note", notes.join(" ")));
}

function showMistakes(worker) {
  const place = $("last");
  const known = new Map([...place.children].map((each) => [each.dataset.key, each]));
  const wanted = worker.mistakes.map((told) => {
    const key = JSON.stringify([told.partition, told.id, told.at]);
    const made = known.get(key) ?? mistakeOf(told);
    made.dataset.key = key;
    return made;
  });
  if (!known.size && wanted.length) wanted[0].open = true;
  const same = wanted.length === place.children.length && wanted.every((each, at) => each === place.children[at]);
  if (!same) place.replaceChildren(...wanted);
  say("mistakes-note", wanted.length
    ? "What each feature added to the score when the label came. Red counted for the wrong class, blue for the right one."
    : "None since this process began.");
}

function showPartitions(status, worker) {
  $("partitions").replaceChildren(
    ...worker.partitions.map((each) => {
      const lag = status.lag[each.partition];
      const head = make("th", "", String(each.partition));
      head.scope = "row";
      const cells = [count(each.labelled), count(each.mistakes), percent(each.mistakes, each.labelled), count(each.waiting),
        duration(each.oldest_waiting_seconds), count(each.parked), lag ? count(lag.examples) : "–", lag ? count(lag.labels) : "–"];
      return make("tr", "", head, ...cells.map((cell) => make("td", "", cell)));
    }),
  );
  const model = status.model;
  const digest = model.digest === null ? "" : ` (sha256 ${model.digest.slice(0, 12)}…)`;
  say("version", model.updates.length
    ? `Model: epoch ${model.epoch}, updates by partition ${list(model.updates.map(count))}${model.features === null ? "" : `, ${count(model.features)} features`}${digest}. Workers at the same version have the same digest.`
    : "No partition is assigned yet.");
}

// --- asking, again and again --------------------------------------------------------------------------

let last = null;

function show(status) {
  const worker = status.worker;
  last = status;
  showHead(status, worker);
  showNotices(worker.notices);
  showFigures(status, worker);
  showHistory(worker);
  showBounds(status, worker);
  showOutcomes("labels", status.labels, status.parked, "parked");
  showOutcomes("examples", { consumed: status.examples, ...status.example_outcomes }, status.waiting, "waiting");
  showWeights(worker.hypothesis);
  showMistakes(worker);
  showPartitions(status, worker);
  say("now", time(worker.now));
  say("build", `version ${worker.version}`);
  document.body.dataset.shown = String(worker.counted_at);
}

async function ask() {
  try {
    const answer = await fetch("/api/status", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    const since = last === null ? "" : ` Below is its last answer, from ${time(last.worker.now)}.`;
    showNotices([{ level: "alarm", text: `The worker does not answer (${error.message}).${since}` }]);
    $("state").className = "pill dead";
    say("state", "no answer");
  }
  setTimeout(ask, document.hidden ? 5 * EVERY_MS : EVERY_MS);
}

$("ranges").addEventListener("change", () => last && showHistory(last.worker));
addEventListener("resize", () => last && showHistory(last.worker));
ask();
