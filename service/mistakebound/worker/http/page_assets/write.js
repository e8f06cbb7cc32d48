// How numbers, times and names are written, and how parts of the page are made. Whatever comes from the stream
// (names, ids, classes) is set as text, never as markup.

export const $ = (id) => document.getElementById(id);

const whole = new Intl.NumberFormat("en");
const figures = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
export const count = (value) => whole.format(value);

const raised = (power) => String(power).replace(/[-\d]/g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]));

export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size === 0 || (size < 1e9 && size >= 1e-4)) return figures.format(value);
  const [digits, power] = value.toExponential(2).split("e");
  return `${digits} × 10${raised(Number(power))}`;
}

/** With its sign, which a colour never says alone. */
export const signed = (value) => (value > 0 ? `+${number(value)}` : number(value).replace("-", "−"));

export const percent = (part, all) => (all ? `${(part / all * 100).toFixed(1)}\u00a0%` : "–");
export const share = (value) => `${+(value * 100).toFixed(1)}\u00a0%`;
export const spell = (label) => (typeof label === "string" ? label : label === null ? "nothing" : JSON.stringify(label));

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.round(seconds / length)}\u00a0${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))}\u00a0s`;
}

/** The time of day, with the date where that is not today's. */
export function time(seconds) {
  const at = new Date(seconds * 1000);
  const date = at.toDateString() === new Date().toDateString() ? {} : { dateStyle: "medium" };
  return at.toLocaleString("en-GB", { ...date, timeStyle: "medium" });
}

export function list(numbers) {
  return numbers.length > 12 ? `${numbers.slice(0, 12).join(", ")} and ${numbers.length - 12} more` : numbers.join(", ");
}

export function say(id, text) {
  const place = $(id);
  if (place.textContent !== text) place.textContent = text;
}

export function make(name, look, ...content) {
  const made = document.createElement(name);
  if (look) made.className = look;
  made.append(...content);
  return made;
}

/** A bar from 0 to `value` of `most`; with `two` sides, from the middle. `bad` is what is wrong, and nothing else. */
export function bar(value, most, { two = false, bad = false } = {}) {
  const part = most > 0 && Number.isFinite(value) ? Math.min(1, Math.abs(value) / most) : 0;
  const fill = make("span", bad ? "bad" : "");
  const size = two ? part * 50 : part * 100;
  fill.style.setProperty("--size", `${size}%`);
  fill.style.setProperty("--from", `${two ? (value < 0 ? 50 - size : 50) : 0}%`);
  const made = make("div", two ? "bar two" : "bar", fill);
  made.setAttribute("aria-hidden", "true");
  return made;
}

export function barRow(name, drawn, value, none = false) {
  const head = make("th", "", name);
  head.scope = "row";
  return make("tr", none ? "none" : "", head, make("td", "", drawn), make("td", "", value));
}
