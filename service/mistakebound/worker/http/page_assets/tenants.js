// Where each tenant has a model of its own: how each fares, the largest first.

import { $, bar, barRow, count, percent, say } from "/write.js";

export function showTenants(status) {
  const tenants = status.tenants ?? [];
  $("tenants-section").hidden = !tenants.length;
  $("tenants").replaceChildren(...tenants.map((each) => {
    const rate = each.labelled ? `, ${percent(each.mistakes, each.labelled)}` : "";
    const name = each.tenant === null ? "all others" : each.complete ? each.tenant : `${each.tenant} (in part)`;
    return barRow(name, bar(each.mistakes, each.labelled, { bad: true }), `${count(each.mistakes)} of ${count(each.labelled)}${rate}`, !each.labelled);
  }));
  const late = tenants.some((each) => !each.complete)
    ? " A partition counts its first hundred tenants one by one: of a tenant that came later there, that part is among all others." : "";
  say("tenants-note", `Mistakes of the labelled, for life; the tenants of most examples first.${late}`);
}
