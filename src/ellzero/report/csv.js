// The table as comma-separated values that a spreadsheet reads as text and numbers, never as formulas.
// `ellzero predict` writes its labels by the same rules, in `cli/spreadsheet.py`.

// Apostrophes before it count, so that one apostrophe less always gives the text back.
const STARTS_FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const IS_NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = STARTS_FORMULA.test(value) && !IS_NUMBER.test(value) ? `'${value}` : value;
  return `"${text.replace(/"/g, '""')}"`;
}

function csvOf(study, positions) {
  const name = (j) => study.features[j].name;
  const classes = coefficientLabels(study);
  const heads = ["s", "feature", "kind", ...classes, "loss", "loss_without", "stand_in",
    "stand_in_loss", "stand_in_correlation"];
  const lines = [heads];
  for (const model of positions.map((k) => study.models[k])) {
    for (const row of model.chosen) {
      const other = row.stand_ins[0] || {};
      lines.push([model.s, name(row.feature), "chosen", ...row.coefficients, model.loss,
        row.loss_without, other.feature === undefined ? null : name(other.feature), other.loss,
        other.correlation]);
    }
    for (const row of model.forced) {
      lines.push([model.s, name(row.feature), "forced", ...row.coefficients, model.loss]);
    }
    lines.push([model.s, "intercept", "intercept", ...model.intercept, model.loss]);
  }
  return "\ufeff" + lines
    .map((line) => heads.map((_, k) => cell(line[k])).join(",") + "\r\n")
    .join("");
}

function coefficientLabels(study) {
  return study.classes && study.classes.length > 2
    ? study.classes.map((c) => `coefficient ${c}`)
    : ["coefficient"];
}

function save(text, fileName) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = element("a", { href: address, download: fileName });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
