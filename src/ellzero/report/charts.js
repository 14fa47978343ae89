// Lines against the number of features, as SVG.

const SVG = "http://www.w3.org/2000/svg";
const LABEL_GAP = 14;

function shape(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function stepsOf(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
}

function powersOf(low, high) {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const digits = to - from > 4 ? [1] : [1, 2, 5];
  const every = Math.ceil((to - from) / 8);
  const all = [];
  for (let k = from; k <= to; k += every) all.push(...digits.map((d) => d * 10 ** k));
  return all.filter((v) => v >= low && v <= high);
}

// A value axis: from data to pixels, and where its ticks are. Logarithmic where losses span decades.
function valueAxis(values, bottom, top, mayBend) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const bends = mayBend && high / low > 50 && low > 1e-6 * high; // a loss of zero is no decade
  const bend = bends ? Math.log : (v) => v;
  const margin = 0.06 * (bend(high) - bend(low)) || Math.abs(high) * 0.1 || 1;
  const [a, b] = [bend(low) - margin, bend(high) + margin];
  const ticks = bends ? powersOf(Math.exp(a), Math.exp(b)) : stepsOf(a, b, 6);
  return { at: (v) => bottom - ((bend(v) - a) / (b - a)) * (bottom - top), ticks };
}

// The axes of a chart, empty; `pick(k)` is called where a size is clicked.
function chart(holder, { sizes, values, here, title, label, bends = false, height = 280, pick,
  right = 16 }) {
  const width = Math.max(holder.clientWidth, 240);
  const [top, bottom] = [26, height - 40];
  const y = valueAxis(values, bottom, top, bends);
  const left = 14 + 7 * Math.max(...y.ticks.map((t) => number(t).length));
  const [first, last] = [sizes[0], sizes[sizes.length - 1]];
  const span = last - first || 1;
  const x = (s) => left + 10 + ((s - first) / span) * (width - left - right - 20);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const tick of y.ticks) {
    const at = y.at(tick);
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }));
    svg.append(shape("text", { class: "tick end", x: left - 6, y: at + 4 }, number(tick)));
  }
  const fits = Math.max(2, Math.floor((width - left - right) / 44));
  const marks = last > first ? stepsOf(first, last, Math.min(fits, 12)) : [first];
  for (const s of marks.filter((v) => Number.isInteger(v))) {
    svg.append(shape("text", { class: "tick middle", x: x(s), y: bottom + 18 }, String(s)));
  }
  const middle = (left + width - right) / 2;
  svg.append(shape("text", { class: "tick middle", x: middle, y: height - 4 }, "number of features"));
  svg.append(shape("text", { class: "tick", x: 0, y: 12 }, label));
  const at = x(sizes[here]);
  svg.append(shape("line", { class: "here", x1: at, x2: at, y1: top - 6, y2: bottom }));
  svg.addEventListener("click", (event) => {
    const place = ((event.clientX - svg.getBoundingClientRect().left) * width) / svg.clientWidth;
    const far = sizes.map((s) => Math.abs(x(s) - place));
    pick(far.indexOf(Math.min(...far)));
  });
  holder.replaceChildren(svg);
  return { svg, x, y: y.at, top, bottom, edge: width - right, width };
}

// Points (null where there is none) joined within runs; a lone point is a dot.
function line(plot, sizes, values, kind) {
  const group = shape("g", { class: kind });
  let run = [];
  const end = () => {
    if (run.length > 1) group.append(shape("polyline", { points: run.join(" ") }));
    run = [];
  };
  values.forEach((value, k) => {
    if (value === null || value === undefined) return end();
    const [a, b] = [plot.x(sizes[k]).toFixed(1), plot.y(value).toFixed(1)];
    run.push(`${a},${b}`);
    group.append(shape("circle", { cx: a, cy: b, r: 2.2 }));
  });
  end();
  plot.svg.append(group);
  return group;
}

function band(plot, sizes, low, high, kind) {
  const there = sizes.map((_, k) => k).filter((k) => Number.isFinite(low[k]));
  const point = (k, values) => `${plot.x(sizes[k]).toFixed(1)},${plot.y(values[k]).toFixed(1)}`;
  const edge = [...there.map((k) => point(k, high)), ...there.reverse().map((k) => point(k, low))];
  plot.svg.append(shape("polygon", { class: kind, points: edge.join(" ") }));
}

// Names beside the ends of lines, moved apart; `ends` are {y, name, kind}, the foremost first.
function endLabels(plot, ends, letters) {
  const room = Math.floor((plot.bottom - plot.top) / LABEL_GAP) + 1;
  const kept = ends.slice(0, room).sort((a, b) => a.y - b.y);
  const places = [];
  kept.forEach((end, k) => places.push(k ? Math.max(end.y, places[k - 1] + LABEL_GAP) : end.y));
  for (let k = places.length - 1, most = plot.bottom; k >= 0; k--, most -= LABEL_GAP) {
    places[k] = Math.min(places[k], most);
  }
  kept.forEach((end, k) => {
    const at = { class: `label ${end.kind}`, x: plot.edge + 4, y: places[k] + 4 };
    plot.svg.append(shape("text", at, shortened(end.name, letters)));
  });
}

function dot(plot, s, value, text) {
  const point = shape("circle", { class: "now", cx: plot.x(s), cy: plot.y(value), r: 5 });
  point.append(shape("title", {}, text));
  plot.svg.append(point);
}
