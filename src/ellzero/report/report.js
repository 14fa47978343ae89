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
    if (row.sectionRowIndex === here) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
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
  const { certified, explanation } = study.models[here];
  at("ending").textContent = explanation && !certified ? `How the search ended: ${explanation}.` : "";
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
  const ridge = study.alpha ? `, plus a ridge of ${number(study.alpha)} on standardised features` : "";
  at("loss-note").append(`Loss: ${loss}${ridge}.${compared}${bound}`);
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
