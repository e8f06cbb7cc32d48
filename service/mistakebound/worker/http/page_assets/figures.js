// What was counted: at a glance, over time, by outcome, by class, by partition.

import { chart } from "/chart.js";
import { $, bar, barRow, count, duration, list, make, number, percent, say, share, time } from "/write.js";

const POINTS = 60;
const MINUTE = 60;
const APART_S = 10;

/** Whether the worker's own partitions are all there are: then its counts are those of all workers. */
export const alone = (worker) => worker.partition_count === null || worker.partitions.length === worker.partition_count;

function lastMinute(worker) {
  const fine = worker.history[0];
  const sum = { labelled: 0, mistakes: 0, majority_mistakes: 0 };
  fine.at.forEach((at, place) => {
    if (at < worker.now - MINUTE) return;
    for (const name of Object.keys(sum)) sum[name] += fine[name][place];
  });
  return sum;
}

/** The oldest example's age by both clocks, where they differ. */
function oldest(worker) {
  const ages = worker.partitions.map((each) => each.oldest_waiting_seconds).filter((each) => each !== null);
  if (!ages.length) return "none";
  const most = worker.max_delay_seconds === null ? "" : ` of ${duration(worker.max_delay_seconds)}`;
  const since = worker.partitions.map((each) => each.oldest_waiting_at).filter((each) => each !== null);
  const [byRecords, byClock] = [Math.max(...ages), worker.now - Math.min(...since)];
  const text = `oldest ${duration(byRecords)}${most}`;
  return Math.abs(byClock - byRecords) < APART_S ? text : `${text} by record time, ${duration(byClock)} by the clock`;
}

export function showFigures(status, worker) {
  const recent = lastMinute(worker);
  const majority = status.baselines.majority;
  const lag = Object.values(status.lag);
  const sum = (of) => lag.reduce((total, each) => total + each[of], 0);
  const checkpoint = worker.checkpoint;
  say("mistakes", count(status.mistakes));
  say("mistakes-of", status.labelled ? `in ${count(status.labelled)} labelled: ${percent(status.mistakes, status.labelled)}` : "no label yet");
  say("majority", percent(majority.mistakes, status.labelled));
  say("majority-of", `${count(majority.mistakes)} mistakes`);
  say("recent", percent(recent.mistakes, recent.labelled));
  say("recent-of", recent.labelled
    ? `${count(recent.mistakes)} in ${count(recent.labelled)}; always the majority ${percent(recent.majority_mistakes, recent.labelled)}`
    : "no label in it");
  say("updates", count(status.model.updates.reduce((total, each) => total + each, 0)));
  const bound = status.bounds.find((each) => each.of === "updates");
  const epoch = [status.epoch ? `epoch ${status.epoch.number}` : ""];
  if (bound) epoch.push(`${bound.holds ? "at most" : "above the bound"} ${number(bound.value)}`);
  if (!alone(worker)) epoch.push(`${count(status.updates)} for life by this worker`);
  else if (status.epoch && status.epoch.number > 1) epoch.push(`${count(status.updates)} for life`);
  say("updates-of", epoch.filter(Boolean).join(", "));
  say("waiting", count(status.waiting));
  say("waiting-of", oldest(worker));
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

export function showHistory(worker) {
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

export function showOutcomes(id, counts, held, name) {
  const all = counts.consumed;
  const rows = Object.entries(counts).filter(([outcome]) => outcome !== "consumed").concat([[name, held]]);
  const bad = new Set(["conflict", "expired", "unmatched", "invalid", "evicted"]);
  $(id).replaceChildren(
    ...rows.map(([outcome, found]) => barRow(outcome.replaceAll("_", " "), bar(found, all, { bad: bad.has(outcome) }), count(found), !found)),
  );
}

export function showPartitions(status, worker) {
  $("partitions").replaceChildren(
    ...worker.partitions.map((each) => {
      const lag = status.lag[each.partition];
      const head = make("th", "", String(each.partition));
      head.scope = "row";
      const since = each.oldest_waiting_at === null ? null : worker.now - each.oldest_waiting_at;
      const cells = [count(each.labelled), count(each.mistakes), percent(each.mistakes, each.labelled), count(each.waiting),
        duration(each.oldest_waiting_seconds), duration(since), count(each.parked), lag ? count(lag.examples) : "–", lag ? count(lag.labels) : "–"];
      return make("tr", "", head, ...cells.map((cell) => make("td", "", cell)));
    }),
  );
  const model = status.model;
  const digest = model.digest === null ? "" : ` (sha256 ${model.digest.slice(0, 12)}…)`;
  say("version", model.updates.length
    ? `Model${worker.measured_at === null ? "" : `, measured ${duration(worker.now - worker.measured_at)} ago`}: epoch ${model.epoch}, updates by partition ${list(model.updates.map(count))}${model.features === null ? "" : `, ${count(model.features)} features`}${digest}. Workers at the same version have the same digest.`
    : "No partition is assigned yet.");
}
