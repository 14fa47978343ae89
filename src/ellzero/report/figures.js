// The charts of the page.

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
    bends: true, label: errorName(study), title: `Cross-validated ${errorName(study)}` });
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
  const ends = [...last.chosen]
    .sort((a, b) => rank(kind(b.feature)) - rank(kind(a.feature)) ||
      Math.abs(effect(b)) - Math.abs(effect(a)))
    .map((row) => ({ y: plot.y(effect(row)), name: nameOf(row.feature), kind: kind(row.feature) }));
  endLabels(plot, ends, narrow ? 11 : 22);
}

const rank = (kind) => ["out", "in", "main"].indexOf(kind);
