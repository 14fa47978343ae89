// The page: one position among the sizes, and everything drawn from it.

const study = JSON.parse(document.getElementById("study").textContent);
const at = (id) => document.getElementById(id);
const nameOf = (j) => study.features[j].name;
const several = study.classes && study.classes.length > 2;
const sizes = study.sizes;

let here = startingPosition();
let marked = null; // the feature whose path stands out: pointed at, or pressed
let pressed = null;

function startingPosition() {
  const wanted = study.cv ? study.cv.one_standard_error : (study.criteria || {}).bic;
  return Math.max(sizes.indexOf(wanted), 0);
}

// What a standard deviation of the feature changes; over several classes, the norm of the changes.
function effect(row) {
  const spread = study.features[row.feature].deviation;
  return several ? spread * Math.hypot(...row.coefficients) : spread * row.coefficients[0];
}

function go(position) {
  here = Math.min(Math.max(position, 0), sizes.length - 1);
  if (pressed !== null && !has(study.models[here], pressed)) pressed = null;
  marked = pressed;
  drawControl();
  drawSummary();
  drawChanges();
  drawFeatures();
  drawCharts();
  for (const row of at("sizes").tBodies[0].rows) {
    row.toggleAttribute("aria-current", row.sectionRowIndex === here);
  }
}

const has = (model, j) => model.chosen.some((row) => row.feature === j);

function drawControl() {
  const slider = at("size");
  slider.max = sizes.length - 1;
  slider.value = here;
  slider.setAttribute("aria-valuetext", counted(sizes[here], "feature"));
  at("count").replaceChildren(element("b", {}, String(sizes[here])),
    sizes[here] === 1 ? " feature" : " features");
  at("fewer").disabled = here === 0;
  at("more").disabled = here === sizes.length - 1;
  for (const button of at("picks").children) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.size) === sizes[here]));
  }
}

function drawSummary() {
  at("summary").replaceChildren(
    ...sentences(study, here).map((parts) => element("p", {}, ...parts)));
}

// Features in one model and not in the other.
function difference(model, other) {
  return model.chosen.map((row) => row.feature).filter((j) => !has(other, j));
}

function movesTo(k) {
  if (k === 0) return { entered: study.models[0].chosen.map((row) => row.feature), left: [] };
  const [before, now] = [study.models[k - 1], study.models[k]];
  return { entered: difference(now, before), left: difference(before, now) };
}

function moveNodes({ entered, left }) {
  const nodes = (members, sign, kind) => members.map((j) =>
    element("span", { class: kind }, `${sign}\u2009`, named(nameOf(j))));
  const all = [...nodes(entered, "+", "entered"), ...nodes(left, "−", "left")];
  return all.length ? listed(all) : ["no change"];
}

function drawChanges() {
  const before = here ? [`Compared with ${counted(sizes[here - 1], "feature")}: `] : ["Starts with "];
  at("changes").replaceChildren(...before, ...moveNodes(movesTo(here)));
}

function headRow(labels) {
  const cells = labels.map(([label, kind]) =>
    element("th", { scope: "col", role: "columnheader", class: kind || "" }, label));
  return element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...cells));
}

function bodyCell(label, kind, ...children) {
  return element("td", { role: "cell", class: kind, "data-label": label }, ...children);
}

function coefficientHeads() {
  return several ? study.classes.map((c) => shortened(c, 16)) : ["coefficient"];
}

function drawFeatures() {
  const model = study.models[here];
  const largest = Math.max(...[...model.chosen, ...model.forced].map((r) => Math.abs(effect(r))), 0);
  const body = element("tbody", { role: "rowgroup" });
  const cost = (row) => row.loss_without;
  for (const row of [...model.chosen].sort((a, b) => cost(b) - cost(a))) {
    body.append(chosenRow(model, row, largest));
  }
  for (const row of model.forced) body.append(plainRow(nameOf(row.feature), "forced", row, largest));
  body.append(plainRow("intercept", "", { coefficients: model.intercept }, 0));
  const heads = coefficientHeads().map((label) => [label, "number"]);
  const labels = [["feature"], ...heads, ["effect"], ["without it", "number"], ["stand-ins"]];
  at("features").replaceChildren(headRow(labels), body);
}

function startOfRow(first, row, largest) {
  const numbers = row.coefficients.map((value, k) =>
    bodyCell(coefficientHeads()[k], "number", number(value, 5)));
  const bar = row.feature === undefined ? [] : [effectBar(effect(row), largest)];
  const name = element("th", { scope: "row", role: "rowheader" }, ...first);
  return element("tr", { role: "row" }, name, ...numbers, bodyCell("effect", "effect", ...bar));
}

function chosenRow(model, row, largest) {
  const button = element("button", { type: "button", class: "feature",
    "aria-pressed": String(pressed === row.feature) }, named(nameOf(row.feature)));
  button.addEventListener("click", () => {
    pressed = marked = pressed === row.feature ? null : row.feature;
    for (const other of at("features").querySelectorAll(".feature")) {
      other.setAttribute("aria-pressed", String(other === button && pressed !== null));
    }
    drawPaths();
  });
  const entry = startOfRow([button], row, largest);
  entry.append(bodyCell("without it", "number", change(row.loss_without, model.loss)));
  entry.append(bodyCell("stand-ins", "stand-ins", ...row.stand_ins.map((o) => standIn(model, o))));
  entry.addEventListener("pointerenter", () => mark(row.feature));
  entry.addEventListener("pointerleave", () => mark(pressed));
  return entry;
}

function plainRow(name, kind, row, largest) {
  const first = kind ? [named(name), ` (${kind})`] : [name];
  const entry = startOfRow(first, row, largest);
  entry.append(bodyCell("", "none"), bodyCell("", "none"));
  return entry;
}

function standIn(model, other) {
  const details = [change(other.loss, model.loss)];
  if (other.correlation !== null) details.push(`r ${number(other.correlation, 2)}`);
  return element("div", {}, named(nameOf(other.feature)),
    element("span", { class: "quiet" }, ` ${details.join(", ")}`));
}

function effectBar(value, largest) {
  const half = largest ? (50 * Math.abs(value)) / largest : 0;
  const svg = shape("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", role: "img",
    "aria-label": `${number(value, 3)} per standard deviation` });
  const x = several ? 0 : value < 0 ? 50 - half : 50;
  const width = several ? 2 * half : half;
  svg.append(shape("rect", { class: "bar", x, width, y: 1, height: 10 }));
  if (!several) svg.append(shape("line", { class: "zero", x1: 50, x2: 50, y1: 0, y2: 12 }));
  svg.append(shape("title", {}, `${number(value, 4)} per standard deviation`));
  return svg;
}

function mark(feature) {
  if (marked === feature) return;
  marked = feature;
  drawPaths();
}

function drawCharts() {
  drawLoss();
  if (study.cv) drawCv();
  drawPaths();
}

const boundOf = (model) => (model.lower_bound ?? (model.certified === true ? model.loss : null));

function drawLoss() {
  const bounded = study.models.some((model) => Number.isFinite(model.lower_bound));
  const bounds = bounded ? study.models.map(boundOf) : [];
  const curves = study.methods.map((method) => study.losses[method]);
  const values = [...curves.flat(), ...bounds].filter((v) => Number.isFinite(v));
  const rivals = study.methods.slice(1);
  const plot = chart(at("loss"), { sizes, values, here, pick: go, bends: true, label: "loss",
    title: "Loss against the number of features", right: rivals.length ? 70 : 16 });
  if (bounded) band(plot, sizes, bounds, study.models.map((model) => model.loss), "band");
  rivals.forEach((method, k) => line(plot, sizes, study.losses[method], `rival dash-${k % 4}`));
  line(plot, sizes, study.losses[study.methods[0]], "main");
  if (rivals.length) {
    endLabels(plot, study.methods.flatMap((method, k) => {
      const known = study.losses[method].filter((v) => v !== null);
      const y = plot.y(known[known.length - 1]);
      return known.length ? [{ y, name: method, kind: k ? "" : "main" }] : [];
    }), 9);
  }
  const model = study.models[here];
  dot(plot, model.s, model.loss, `${counted(model.s, "feature")}: loss ${number(model.loss, 6)}`);
}

function drawCv() {
  const { error, standard_error: se } = study.cv;
  const [low, high] = [error.map((e, k) => e - se[k]), error.map((e, k) => e + se[k])];
  const plot = chart(at("cv"), { sizes, values: [...low, ...high], here, pick: go,
    label: errorName(study), title: `Cross-validated ${errorName(study)}` });
  band(plot, sizes, low, high, "band");
  const best = sizes.indexOf(study.cv.best);
  const level = plot.y(high[best]);
  plot.svg.append(shape("line", { class: "rule", x1: plot.x(sizes[0]), x2: plot.edge, y1: level,
    y2: level }));
  line(plot, sizes, error, "main");
  dot(plot, sizes[here], error[here], `${number(error[here], 5)} ± ${number(se[here], 2)}`);
}

function drawPaths() {
  const lines = new Map();
  study.models.forEach((model, k) => {
    for (const row of model.chosen) {
      if (!lines.has(row.feature)) lines.set(row.feature, sizes.map(() => null));
      lines.get(row.feature)[k] = effect(row);
    }
  });
  const values = [...lines.values()].flat().filter((v) => v !== null);
  const narrow = at("paths").clientWidth < 520;
  const plot = chart(at("paths"), { sizes, values: [...values, 0], here, pick: go, height: 340,
    label: "effect per standard deviation", right: narrow ? 84 : 170,
    title: "Effects of the features against the number of features" });
  const model = study.models[here];
  const last = study.models[sizes.length - 1];
  const kind = (j) => (j === marked ? "main" : has(model, j) ? "in" : "out");
  const drawn = [...lines.keys()].sort((a, b) => rank(kind(a)) - rank(kind(b)));
  for (const j of drawn) line(plot, sizes, lines.get(j), `path ${kind(j)}`);
  const ends = last.chosen
    .sort((a, b) => rank(kind(b.feature)) - rank(kind(a.feature)) ||
      Math.abs(effect(b)) - Math.abs(effect(a)))
    .map((row) => ({ y: plot.y(effect(row)), name: nameOf(row.feature), kind: kind(row.feature) }));
  endLabels(plot, ends, narrow ? 11 : 24);
}

const rank = (kind) => ["out", "in", "main"].indexOf(kind);

function drawOnce() {
  const target = study.target ? [named(study.target), " from "] : [];
  const rows = counted(study.n_rows, "row");
  at("facts").append(...target, `${rows}, ${counted(study.n_features, "feature")}`);
  at("made-by").append(`Made by ${study.made_by || "ellzero"} from saved results; this file loads ` +
    "nothing from the network.");
  at("validation").hidden = !study.cv;
  drawNotes();
  drawPicks();
  drawSizes();
}

function drawNotes() {
  const of = several ? "one for every class" : study.task === "classification"
    ? `the change of the log-odds of “${shortened(study.classes[1], 24)}”` : "in the units of the data";
  const exact = study.stand_in_losses === "exact"
    ? "the loss after exchanging the two, computed exactly"
    : "proposed by a quadratic model of the loss, then refitted";
  at("notes").append(`Coefficients: ${of}. Effect: coefficient times the standard deviation of the ` +
    "feature. Without it: by how much the loss rises if the feature is left out. Stand-ins: which " +
    `feature could take its place, the change of the loss (${exact}), and the correlation r.`);
  const loss = study.task === "regression" ? "half the sum of squared residuals" : "the log-loss, summed over rows";
  const compared = study.methods.length > 1
    ? ` The models are those of “${study.methods[0]}”; every method is refitted on its features.` : "";
  const bound = study.models.some((model) => Number.isFinite(model.lower_bound))
    ? " No model of a size can be below the shaded band." : "";
  at("loss-note").append(`Loss: ${loss}.${compared}${bound}`);
  at("cv-note").append("The band is one standard error over the folds; the thin line is one standard " +
    "error above the lowest error.");
  at("paths-note").append("A feature has a line where it is chosen. Point at a feature in the table, or press " +
    "its name, to see its line." + (several ? " Over several classes: the root of the sum of squares." : ""));
}

function drawPicks() {
  const { cv, criteria } = study;
  const wanted = cv ? [["one standard error", cv.one_standard_error], ["lowest error", cv.best]] : [];
  if (criteria) wanted.push(["BIC", criteria.bic]);
  for (const [label, s] of wanted.filter(([, size]) => sizes.includes(size))) {
    const button = element("button", { type: "button", "data-size": s }, `${label}: ${s}`);
    button.addEventListener("click", () => go(sizes.indexOf(s)));
    at("picks").append(button);
  }
}

function drawSizes() {
  const body = element("tbody", { role: "rowgroup" });
  study.models.forEach((model, k) => {
    const button = element("button", { type: "button", class: "feature",
      "aria-label": `Show ${counted(model.s, "feature")}` }, String(model.s));
    button.addEventListener("click", () => go(k));
    const error = study.cv ? [bodyCell("cross-validated", "number", number(study.cv.error[k]))] : [];
    body.append(element("tr", { role: "row" },
      element("th", { scope: "row", role: "rowheader" }, button),
      bodyCell("loss", "number", number(model.loss, 6)),
      bodyCell("explained", "number", model.explained === null ? "–" : share(model.explained)),
      ...error,
      bodyCell("entered and left", "moves", ...moveNodes(movesTo(k))),
      bodyCell("how the search ended", "quiet", model.explanation || "")));
  });
  const error = study.cv ? [["cross-validated", "number"]] : [];
  at("sizes").replaceChildren(headRow([["s"], ["loss", "number"], ["explained", "number"], ...error,
    ["entered and left"], ["how the search ended"]]), body);
}

function listen() {
  at("size").addEventListener("input", (event) => go(Number(event.target.value)));
  at("fewer").addEventListener("click", () => go(here - 1));
  at("more").addEventListener("click", () => go(here + 1));
  at("save").addEventListener("click", () =>
    save(csvOf(study, [here]), `model-${sizes[here]}-features.csv`));
  at("save-all").addEventListener("click", () =>
    save(csvOf(study, sizes.map((_, k) => k)), "models.csv"));
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.round(entry.contentRect.width) === width) return;
    width = Math.round(entry.contentRect.width);
    drawCharts();
  }).observe(at("loss"));
}

drawOnce();
listen();
go(here);
