// Which class is taken for which, and what that comes to: for life, as the log has it.

import { $, bar, barRow, count, make, number, percent, say, share, spell } from "/write.js";

const PAIRS = 8;
const MEASURES = {
  precision: "precision", recall: "recall", f1: "F1", specificity: "specificity",
  balanced_accuracy: "balanced accuracy", kappa: "Cohen's kappa", kappa_m: "kappa M",
  kappa_t: "kappa T",
};
const KAPPAS = ["kappa", "kappa_m", "kappa_t"];

const times = (one) => (one.at_least === one.at_most ? count(one.at_most) : `${count(one.at_least)} to ${count(one.at_most)}`);

/** Of two classes both kinds of mistake; of more, the pairs that are taken for each other most often. */
function showPairs(confusion, classes) {
  const wrong = confusion.model.largest;
  const labelled = (actual) => confusion.by_class[actual]?.labelled ?? 0;
  let rows = wrong.slice(0, PAIRS).map((each) => ["", each]);
  if (classes.length === 2) {
    const [positive, negative] = classes.map(spell);
    const found = (predicted, actual) => wrong.find((each) => each.predicted === predicted && each.actual === actual)
      ?? { predicted, actual, at_least: 0, at_most: 0 };
    rows = [["false positive: ", found(positive, negative)], ["false negative: ", found(negative, positive)]];
  }
  $("classes").replaceChildren(...rows.map(([kind, each]) => {
    const all = labelled(each.actual);
    const value = `${times(each)} of ${count(all)}${all ? `, ${percent(each.at_most, all)}` : ""}`;
    const name = `${kind}predicted ${spell(each.predicted)}, was ${spell(each.actual)}`;
    return barRow(name, bar(each.at_most, all, { bad: true }), value, !each.at_most);
  }));
  return classes.length !== 2 && wrong.length > PAIRS ? ` ${count(wrong.length - PAIRS)} more pairs of classes.` : "";
}

function showMeasures(confusion) {
  const of = [confusion.model.measures, confusion.majority.measures];
  $("measures").replaceChildren(...Object.entries(MEASURES).map(([name, text]) => {
    const values = of.map((each) => each[name]);
    const cells = values.map((value) => (value === null ? "–" : KAPPAS.includes(name) ? number(+value.toFixed(3)).replace("-", "−") : share(value)));
    const head = make("th", "", text);
    head.scope = "row";
    return make("tr", values.every((value) => value === null) ? "none" : "", head, ...cells.map((cell) => make("td", "", cell)));
  }));
}

export function showClasses(status, worker) {
  const confusion = status.confusion;
  const more = showPairs(confusion, worker.classes);
  showMeasures(confusion);
  const whose = confusion.positive === null ? "means over the classes" : `of ${confusion.positive}`;
  const unknown = confusion.unknown
    ? ` ${count(confusion.unknown)} more were judged by an earlier version, which did not count so: they are in none of these numbers.`
    : "";
  const { cost } = confusion.model;
  say("cost-note", cost === null ? ""
    : `These mistakes cost ${number(cost)}; those of always the majority ${number(confusion.majority.cost)}.`);
  const delay = confusion.mistakes_by_delay;
  say("delay-note", confusion.judged
    ? `As the model was when each label came, before it learned from it, it would have made ${count(confusion.mistakes_at_label)} mistakes: `
      + `waiting for labels ${delay >= 0 ? `cost ${count(delay)}` : `saved ${count(-delay)}`}.`
    : "");
  say("classes-note", confusion.judged
    ? `Of ${count(confusion.judged)} labels, for life. Precision, recall, F1 and specificity are ${whose}; kappa M is the share avoided of always the `
      + `majority's mistakes, kappa T of those of always the label before.${more}${unknown}`
    : `No label yet.${unknown}`);
}
