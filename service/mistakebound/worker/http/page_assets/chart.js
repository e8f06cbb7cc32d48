// Lines over time, drawn by hand as SVG: a few grid lines, gaps where there is no value, and the values
// under the pointer in the legend. Text is only ever set as text.

const NS = "http://www.w3.org/2000/svg";
const EDGE = { top: 8, right: 4, bottom: 22, left: 46 };

function add(parent, name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

/** The round number at or above `value` that divides into two or more equal steps of one figure. */
function ceiling(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].find((each) => each * size >= value * 0.999) * size;
}

function clock(at, span) {
  const day = span > 36 * 3600 ? { weekday: "short" } : {};
  const second = span < 300 ? { second: "2-digit" } : {};
  return new Date(at * 1000).toLocaleTimeString("en-GB", { ...day, hour: "2-digit", minute: "2-digit", ...second });
}

/** Show in the legend the values at one time, or the newest ones. */
function describe(legend, series, format, place) {
  legend.replaceChildren(
    ...series.map((line) => {
      const entry = document.createElement("span");
      const sample = document.createElement("i");
      sample.className = line.look;
      const value = document.createElement("b");
      const known = place === undefined ? line.points.findLast(([, v]) => v !== null) : line.points[place];
      value.textContent = known && known[1] !== null ? format(known[1]) : "–";
      entry.append(sample, `${line.name} `, value);
      return entry;
    }),
  );
}

/**
 * Draw `series` of {name, look, points: [[Unix time, value or null]]} from `from` to `to`.
 * All series have points at the same times.
 */
export function chart(svg, legend, { from, to, series, format, title }) {
  const width = svg.clientWidth || 600;
  const height = svg.clientHeight || 150;
  const inner = { width: width - EDGE.left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
  const values = series.flatMap((line) => line.points.map(([, value]) => value ?? 0));
  const top = ceiling(Math.max(...values, 0) || 1);
  const x = (at) => EDGE.left + ((at - from) / (to - from || 1)) * inner.width;
  const y = (value) => EDGE.top + (1 - value / top) * inner.height;

  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const newest = series.map((line) => {
    const known = line.points.findLast(([, value]) => value !== null);
    return `${line.name} ${known ? format(known[1]) : "not known"}`;
  });
  svg.setAttribute("aria-label", `${title}: ${newest.join(", ")}`);
  for (const share of [0, 0.5, 1]) {
    const line = y(top * share);
    add(svg, "line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: line, y2: line });
    add(svg, "text", { x: EDGE.left - 6, y: line + 4, "text-anchor": "end" }, format(top * share));
  }
  const ticks = width < 480 ? 2 : 4;
  for (let tick = 0; tick <= ticks; tick += 1) {
    const at = from + ((to - from) * tick) / ticks;
    const anchor = tick === 0 ? "start" : tick === ticks ? "end" : "middle";
    add(svg, "text", { x: x(at), y: height - 6, "text-anchor": anchor }, clock(at, to - from));
  }
  for (const line of series) {
    let path = "";
    line.points.forEach(([at, value], place) => {
      if (value === null) return;
      const joined = place > 0 && line.points[place - 1][1] !== null;
      const next = line.points[place + 1];
      path += `${joined ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      if (!joined && !(next && next[1] !== null)) add(svg, "circle", { class: line.look, cx: x(at), cy: y(value), r: 2 });
    });
    add(svg, "path", { class: line.look, d: path });
  }
  const cursor = add(svg, "line", { class: "cursor", y1: EDGE.top, y2: EDGE.top + inner.height, visibility: "hidden" });
  describe(legend, series, format);
  svg.onpointermove = (event) => {
    const at = from + ((event.offsetX - EDGE.left) / inner.width) * (to - from);
    const times = series[0].points.map(([time]) => Math.abs(time - at));
    if (!times.length) return;
    const place = times.indexOf(Math.min(...times));
    const where = x(series[0].points[place][0]);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, where);
    cursor.setAttribute("visibility", "visible");
    describe(legend, series, format, place);
  };
  svg.onpointerleave = () => {
    cursor.setAttribute("visibility", "hidden");
    describe(legend, series, format);
  };
}
