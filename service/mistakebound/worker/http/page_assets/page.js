// The status page: asks /api/status every two seconds and shows the answer.

import { showAsked } from "/asked.js";
import { showClasses } from "/classes.js";
import { alone, showFigures, showHistory, showOutcomes, showPartitions } from "/figures.js";
import { showBounds, showMistakes, showWeights } from "/model.js";
import { showTenants } from "/tenants.js";
import { showReliability } from "/reliability.js";
import { $, list, make, percent, say, time } from "/write.js";

const EVERY_MS = 2000;

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
  const { examples, labels, predictions } = worker.topics;
  const place = [`group ${worker.group}`, worker.prefix && `prefix ${worker.prefix}`, `reads ${examples} and ${labels}`, `writes ${predictions}`];
  say("place", place.filter(Boolean).join(" · "));
  const rate = status.labelled ? `${percent(status.mistakes, status.labelled)} mistakes` : "no label yet";
  document.title = `${rate} · ${worker.prefix || worker.group} · ${examples}, ${labels} · ${worker.slot}`;
  for (const [look, text] of [[".own", " (this worker)"], [".all", " (all workers)"]]) {
    for (const each of document.querySelectorAll(look)) each.textContent = alone(worker) ? "" : text;
  }
}

/** Before anything came: what to send. */
function showBegin(status, worker) {
  $("begin").hidden = status.examples + status.labels.consumed > 0 || !worker.partitions.length || !worker.first_commands.length;
  say("first-example", worker.first_commands[0] ?? "");
  say("first-label", worker.first_commands[1] ?? "");
  say("first-topics", `${worker.topics.examples} and ${worker.topics.labels}`);
}

function showNotices(notices) {
  const now = notices.map((each) => `${each.level} ${each.text}`).join("\n");
  if ($("notices").dataset.said === now) return;
  $("notices").dataset.said = now;
  $("notices").replaceChildren(...notices.map((each) => make("li", `notice ${each.level}`, each.text)));
}

let last = null;

function show(status) {
  const worker = status.worker;
  last = status;
  showHead(status, worker);
  showNotices(worker.notices);
  showBegin(status, worker);
  showFigures(status, worker);
  showHistory(worker);
  showBounds(status, worker);
  showOutcomes("labels", status.labels, status.parked, "parked");
  showOutcomes("examples", { consumed: status.examples, ...status.example_outcomes }, status.waiting, "waiting");
  showAsked(status);
  showReliability(status);
  showWeights(worker);
  showClasses(status, worker);
  showTenants(status);
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
