// The tables: the model of one size, and all sizes.

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
  entry.append(bodyCell("without it", "number", change(row.loss_without, model.loss, study.resolution)));
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
  const details = [change(other.loss, model.loss, study.resolution)];
  if (other.correlation !== null) details.push(`r\u00a0${correlation(other.correlation)}`);
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

function drawSizes() {
  const proofs = study.models.some(proofOf);
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
      ...(proofs ? [bodyCell("proven", "proof", proofOf(model))] : [])));
  });
  const error = study.cv ? [["cross-validated", "number"]] : [];
  at("sizes").replaceChildren(headRow([["s"], ["loss", "number"], ["explained", "number"], ...error,
    ["entered and left"], ...(proofs ? [["proven"]] : [])]), body);
}
