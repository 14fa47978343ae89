// Numbers, names and sentences. Names come from data: they only ever become text nodes.

const LONGEST_NAME = 48;
const UNSHOWN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const ORDINALS = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth",
  "ninth", "tenth", "eleventh", "twelfth"];

const minus = (text) => text.replace(/-/g, "−");

function number(value, digits = 4, least = 1) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) {
    return minus(value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e"));
  }
  return minus(value.toLocaleString("en-GB", { minimumSignificantDigits: least,
    maximumSignificantDigits: digits }));
}

const share = (value) => `${number(100 * value, 3, value < 1 ? 3 : 1)}\u00a0%`;

// Two digits, three where two would make it look like 1.
const correlation = (r) => minus(r.toFixed(Math.abs(r) > 0.99 ? 3 : 2));

// A difference relative to a loss, with its sign; a factor where percentages would be silly.
// What is less than the resolution is rounding.
function change(to, from, resolution) {
  if (Math.abs(to - from) <= resolution) return "±0\u00a0%";
  if (from <= resolution) return `to ${number(to)}`;
  if (to > 100 * from) return `×${number(to / from, 2)}`;
  const relative = (to - from) / from;
  const digits = Math.abs(relative) < 0.1 ? 2 : 3;
  return `${relative > 0 ? "+" : ""}${number(100 * relative, digits, 2)}\u00a0%`;
}

const ending = (n) => (n % 100 > 10 && n % 100 < 14 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[n % 10]);
const ordinal = (n) => ORDINALS[n] || `${n}${ending(n) || "th"}`;
const article = (word) => (/^(e|8|18th)/.test(word) ? "An" : "A");
const counted = (n, noun) => `${number(n, 9)} ${noun}${n === 1 ? "" : "s"}`;

function visible(name) {
  return String(name).slice(0, 2000).replace(UNSHOWN, "\ufffd").trim() || "(no name)";
}

function shortened(name, length = LONGEST_NAME) {
  const characters = Array.from(visible(name));
  return characters.length > length
    ? characters.slice(0, length - 1).join("") + "…"
    : characters.join("");
}

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// The name of a feature, shut off from the direction of the text around it.
function named(name) {
  const short = shortened(name);
  const node = element("bdi", { class: "name" }, short);
  if (short !== visible(name)) node.title = visible(name).slice(0, 400);
  return node;
}

function listed(nodes) {
  return nodes.flatMap((node, k) => (k ? [", ", node] : [node]));
}

// What there is to say of the model at position k, as one list of parts per sentence.
function sentences(study, k) {
  return [fitOf(study, k), ofNextSize(study, k), ofProof(study.models[k]), ofChoice(study, k)]
    .filter((parts) => parts.length);
}

function fitOf(study, k) {
  const model = study.models[k];
  const found = model.chosen.length;
  const forced = study.n_forced ? ` (and ${number(study.n_forced, 9)} forced)` : "";
  const all = number(study.n_features - study.n_forced, 9);
  const parts = [`With ${number(found, 9)} of ${all} features${forced} the model explains `];
  const target = study.target ? named(study.target) : "the target";
  if (study.task === "regression") {
    const error = `; it is off by ${number(model.rmse)} (root mean square)`;
    parts.push(element("strong", {}, ofVariance(model, "variance")), " of ", target, error);
  } else {
    const right = `, and puts ${share(model.accuracy)} of the rows into the right class`;
    parts.push(element("strong", {}, ofVariance(model, "deviance")), " of ", target, right);
  }
  parts.push(", on the rows it was fitted to.");
  if (found < model.s) parts.push(` The method found no model with ${model.s}.`);
  return parts;
}

const ofVariance = (model, what) =>
  model.explained === null ? `none of the ${what}` : `${share(model.explained)} of the ${what}`;

function ofNextSize(study, k) {
  const [model, next] = [study.models[k], study.models[k + 1]];
  if (!next) return [];
  const gain = model.loss - next.loss;
  const by = gain <= study.resolution
    ? "not lower the loss" : `lower the loss by ${share(gain / model.loss)}`;
  const word = ordinal(next.s);
  const subject = next.s === model.s + 1 ? `${article(word)} ${word}` : `Going to ${next.s}`;
  return [`${subject} would ${by}.`];
}

function ofProof(model) {
  const proof = proofOf(model);
  if (!proof) return [];
  if (proof !== "best") return [`This is ${proof} of the best possible ${model.s}-feature model.`];
  const others = model.s === 1 ? "feature gives" : `${model.s} features give`;
  return [`This is proven best: no other ${others} a lower loss.`];
}

// How close to the best possible model of its size this one is known to be, if anything is.
function proofOf(model) {
  if (model.certified === true) return "best";
  const bound = model.lower_bound;
  return bound > 0 ? `within ${share(Math.max(model.loss - bound, 0) / model.loss)}` : "";
}

function ofChoice(study, k) {
  const cv = study.cv;
  if (!cv) {
    const bic = study.criteria && study.criteria.bic;
    return bic ? [`The Bayesian information criterion (BIC) picks s\u00a0=\u00a0${bic}.`] : [];
  }
  const here = `${number(cv.error[k])} ± ${number(cv.standard_error[k], 2)}`;
  return [
    `Over ${counted(cv.n_folds, "fold")} the ${errorName(study)} is ${here} at this size. ` +
      `The one-standard-error rule picks s\u00a0=\u00a0${cv.one_standard_error}; ` +
      `the error is lowest at s\u00a0=\u00a0${cv.best}.`,
  ];
}

const errorName = (study) =>
  study.task === "regression" ? "mean squared error" : "mean log-loss";
