// Where labels are asked for: how many were, which came, and what their mistakes say of all examples.

import { $, bar, barRow, count, number, percent, say } from "/write.js";

export function showAsked(status) {
  const asked = status.asked;
  $("asked").hidden = !asked;
  if (!asked) return;
  const rows = [
    ["asked for, label came", asked.labelled, false],
    ["asked for, label never came", asked.missing, true],
    ["not asked for, label came", asked.unasked_labelled, false],
    ["not asked for, no label", asked.unasked_missing, false],
  ];
  const all = rows.reduce((total, each) => total + each[1], 0);
  $("asked-counts").replaceChildren(...rows.map(([name, found, bad]) =>
    barRow(name, bar(found, all, { bad }), `${count(found)}${all ? `, ${percent(found, all)}` : ""}`, !found)));
  const low = asked.missing ? " It is too low: some labels that were asked for never came." : "";
  const expected = asked.expected
    ? ` On average over what is asked for, at most ${number(asked.expected.value)} are to be expected (${asked.expected.name}: ${asked.expected.assumes}).` : "";
  say("asked-note", all
    ? `Estimated mistakes in all ${count(all)} examples: ${number(asked.estimated_mistakes)}, which is ${percent(asked.estimated_mistakes, all)}, by the ${count(asked.mistakes)} among the labels asked for.${low}${expected} Labels that come unasked are counted and not learned from.`
    : "");
}
