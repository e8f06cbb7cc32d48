// What was learned: bounds beside counts, the largest weights, the last mistakes taken apart.

import { alone } from "/figures.js";
import { $, bar, barRow, count, make, number, say, signed, spell, time } from "/write.js";

export function showBounds(status, worker) {
  const own = alone(worker) ? "" : ", this worker";
  const all = alone(worker) ? "" : ", all workers";
  const made = status.bounds.map((bound) => {
    const what = bound.of === "updates" ? `Updates${all}` : `Mistakes on predictions${own}`;
    const verdict = bound.holds ? `${count(bound.count)} of at most ${number(bound.value)}` : `${count(bound.count)}, above the bound ${number(bound.value)}`;
    const head = make("p", "", make("span", "", what), make("b", "", verdict));
    const note = bound.holds ? "" : " What was declared about the data does not hold.";
    return make("div", "bound", head, bar(bound.count, bound.value, { bad: !bound.holds }), make("small", "", `${bound.name}: ${bound.assumes}.${note}`));
  });
  if (!made.length) made.push(make("p", "", worker.no_bound ?? "Nothing measured yet."));
  $("bounds").replaceChildren(...made);
  const said = [];
  const [declared, most, newest] = [worker.declared_margin, status.margin_upper_bound, worker.window_margin_upper_bound];
  if (most !== null) {
    const also = newest === null ? "" : `, or above ${number(newest)} on the newest of them`;
    said.push(`No separator of length 1 has a margin above ${number(most)} on the updates${also}.`);
  }
  if (declared !== null) {
    const refuted = [most, newest].some((each) => each !== null && each < declared);
    said.push(`Declared: ${number(declared)}${refuted ? ", which no separator has" : ""}.`);
  }
  const proved = status.proved_changes ?? null;
  if (proved !== null) {
    said.push(proved.count
      ? `So the stream has changed at least ${proved.count === 1 ? "once" : `${count(proved.count)} times`} in this epoch.`
      : "No change of the stream is proved in this epoch.");
    if (proved.restarts) said.push(`The model has started from zero ${proved.restarts === 1 ? "once" : `${count(proved.restarts)} times`}.`);
  }
  say("margin", said.join(" "));
}

/** Which way a bar points, in words: colour is for what is wrong, and a weight is not. */
function direction(hypothesis, classes, two) {
  if (hypothesis.initial !== null) {
    const start = hypothesis.initial ? `, from the ${number(hypothesis.initial)} that each began with` : "";
    return ` Learning multiplies them, so the bars are on a logarithmic scale${start}: ${hypothesis.initial ? "promoted to the right, demoted to the left" : "above 0 to the right, below 0 to the left"}.`;
  }
  if (!two) return "";
  if (!hypothesis.linear) return " Positive to the right, negative to the left.";
  return classes.length === 2 ? ` To the right they speak for ${spell(classes[0])}, to the left for ${spell(classes[1])}.` : " To the right they speak for the class, to the left against it.";
}

export function showWeights(worker) {
  const hypothesis = worker.hypothesis;
  const top = hypothesis === null ? [] : hypothesis.top;
  const size = (each) => each.theta ?? each.value;
  const most = Math.max(0, ...top.map((each) => Math.abs(size(each))));
  const two = top.some((each) => size(each) < 0);
  const written = (each) => (two && each.theta === null ? signed(each.value) : number(each.value));
  $("weights").replaceChildren(...top.map((each) => barRow(each.name, bar(size(each), most, { two }), written(each))));
  const nothing = hypothesis === null ? "Nothing measured yet." : "Nothing learned yet: every weight has its initial value.";
  say("weights-note", top.length ? `${count(top.length)} of ${count(hypothesis.count)} ${hypothesis.what}.${direction(hypothesis, worker.classes, two)}` : nothing);
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
    return barRow(name, drawn, known ? signed(each.contribution) : "–");
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

export function showMistakes(worker) {
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
    ? "What each feature added to the score when the label came: to the right (+, red) for the wrong class, to the left (−, blue) for the right one."
    : "None since this process began.");
}
