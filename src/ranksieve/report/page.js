"use strict";
// Figures drawn on demand, sortable tables, the path explorer, gains and losses. No libraries, no network access.
const data = unpack(JSON.parse(document.getElementById("page-data").textContent));
const narrow = matchMedia("(max-width: 700px)");
const hidden = new Set();
let printing = false;
const PAPER = 680;  // pixels; fits A4 and Letter
const plotted = new Map();  // element -> figure
const WORST = 10, OTHER = "#7f8791";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const signed = (value, digits = 4) => (value > 0 ? "+" : "") + minus(value.toFixed(digits));

// --- data as packed by page.py: shared styles and x values, weights as text ------------------------------------
function unpack(page) {
  page.lists = page.lists.map(list => typeof list === "string" ? numbers(list) : list);
  const trace = ({look, x, ...rest}) => ({...page.looks[look], ...rest, ...(x === undefined ? {} : {x: page.lists[x]})});
  const whole = figure => ({...figure, data: figure.data.map(trace)});
  for (const name of Object.keys(page.figures)) page.figures[name] = whole(page.figures[name]);
  for (const path of Object.values(page.explorers ?? {}).flat()) {
    path.figure = whole(path.figure);
    path.points = path.points.map(text => numbers(text).flatMap((weight, k) => weight === null ? [] : [[k, weight]]));
  }
  return page;
}

// --- figures: drawn when visible, and again when their width changes --------------------------------------------
function paint(container) {
  const paper = container.closest(".curves") ? PAPER / 2 : PAPER, width = printing ? paper : Math.max(container.clientWidth, 200);
  drawFigure(container, plotted.get(container), {width, small: narrow.matches || width < 500, hidden});
  container.drawnWidth = width;
}
const resized = new ResizeObserver(entries => {
  for (const {target} of entries) if (!printing && target.clientWidth !== target.drawnWidth) paint(target);
});
function draw(container, figure) {
  plotted.set(container, figure);
  paint(container);
  resized.observe(container);
}
const waiting = new Map();  // element -> function that draws it
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) show(entry.target);
}, {rootMargin: "400px"});
function whenSeen(container, how) {
  waiting.set(container, how);
  watcher.observe(container);
}
function show(container) {
  const how = waiting.get(container);
  waiting.delete(container);
  watcher.unobserve(container);
  if (how) how();
}
function repaint() {
  for (const container of plotted.keys()) paint(container);
}
function print(begins) {
  printing = begins;
  if (begins) for (const part of all("details")) part.open = true;
  repaint();
  if (begins) for (const container of [...waiting.keys()]) show(container);
}
for (const link of all("nav a")) link.addEventListener("click", () => {
  const part = document.querySelector(link.getAttribute("href"));
  if (part instanceof HTMLDetailsElement) part.open = true;
});
narrow.addEventListener("change", repaint);
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));

// --- tables wider than the screen scroll, by keyboard too --------------------------------------------------------
const scrolls = new ResizeObserver(entries => {
  for (const box of new Set(entries.map(({target}) => target.closest(".scroll")))) {
    const more = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (more) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
});
for (const part of all(".scroll, .scroll > *")) scrolls.observe(part);

for (const container of all("[data-figure]")) whenSeen(container, () => draw(container, data.figures[container.dataset.figure]));
for (const button of all(".legend button")) button.addEventListener("click", () => {
  const method = button.dataset.method, off = !hidden.delete(method);
  if (off) hidden.add(method);
  for (const same of all(".legend button").filter(b => b.dataset.method === method))
    same.setAttribute("aria-pressed", String(!off));
  repaint();
});

// --- tables: click a heading to sort; numbers in decreasing order first, weights by |weight| -------------------
function sortKey(row, column) {
  const cell = row.cells[column], value = cell.dataset.size ?? cell.dataset.value ?? cell.textContent.trim().replace("−", "-").replace(/ %$/, "");
  return value !== "" && isFinite(value) ? Number(value) : value;
}
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === typeof b) return a.localeCompare(b, undefined, {numeric: true});
  return typeof a === "number" ? 1 : -1;
}
function sort(table, heading, direction) {
  const column = heading.cellIndex, sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => sign * compare(sortKey(a, column), sortKey(b, column)));
  for (const th of all("th[aria-sort]", table)) th.setAttribute("aria-sort", th === heading ? direction : "none");
  table.tBodies[0].append(...rows);
}
for (const table of all("table.sortable")) for (const button of all("th button", table)) {
  const heading = button.parentElement;
  button.addEventListener("click", () => {
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    sort(table, heading, heading.getAttribute("aria-sort") === first ? other : first);
  });
}

// --- features: weights of another method -------------------------------------------------------------------
for (const choice of all("[data-features-of]")) choice.addEventListener("change", () => {
  const table = document.getElementById(choice.dataset.featuresOf);
  const of = data.features[table.id][choice.value];
  const largest = Math.max(...of.weight.map(Math.abs)) || 1;
  for (const row of table.tBodies[0].rows) {
    const k = Number(row.dataset.row);
    const weight = row.querySelector("[data-column=weight]"), folds = row.querySelector("[data-column=folds]");
    weight.dataset.value = of.weight[k];
    weight.dataset.size = Math.abs(of.weight[k]);
    weight.textContent = of.weight[k] === 0 ? "0" : signed(of.weight[k]);
    folds.dataset.value = of.folds[k];
    folds.textContent = `${(100 * of.folds[k]).toFixed(0)} %`;
    bar(row.querySelector(".bar span"), of.weight[k], largest);
  }
  const heading = table.querySelector("th[aria-sort$=scending]");
  sort(table, heading, heading.getAttribute("aria-sort"));
});
function bar(span, value, largest) {
  span.className = value > 0 ? "up" : "down";
  span.style.width = `${(100 * Math.abs(value) / largest).toFixed(1)}%`;
}

// --- the path explorer -------------------------------------------------------------------------------------
const colourOf = ({colours, features}, feature) =>  // a feature may be named "constructor"
  Object.hasOwn(colours, features[feature]) ? colours[features[feature]] : undefined;
function withWeights(path) {  // adds a line for the weights of each feature, the chosen ones on top
  const points = path.points.map(point => new Map(point)), colour = feature => colourOf(path, feature);
  const lines = path.lines.map(feature => ({
    type: "scatter", mode: "lines", name: path.features[feature], hover: path.hover,
    x: path.alphas, y: points.map(point => point.get(feature) ?? 0),
    line: {color: colour(feature) ?? OTHER, width: colour(feature) ? 2 : 1},
  }));
  lines.sort((a, b) => a.line.width - b.line.width);
  return {...path.figure, data: [...lines, ...path.figure.data]};
}
function explore(root) {
  const paths = data.explorers[root.dataset.explorer].map(path => ({...path, figure: withWeights(path)}));
  const which = root.querySelector(".which"), slider = root.querySelector("input"), plot = root.querySelector(".plot");
  let path = paths[0], asked = false;
  function open(number) {
    path = paths[number];
    slider.max = path.alphas.length - 1;
    slider.value = path.chosen;
    if (!waiting.has(plot)) draw(plot, path.figure);
    update();
  }
  function update() {
    const k = Number(slider.value);
    readings(root.querySelector(".readings"), path, k);
    root.querySelector(".change").textContent = changes(path, k);
    weights(root.querySelector("tbody"), path, k);
    slider.setAttribute("aria-valuetext", path.by === "features" ? `${path.n_nonzero[k]} features` : `${path.by} = ${path.alphas[k].toPrecision(3)}, ${path.n_nonzero[k]} features`);
    path.figure.layout.shapes[1].x0 = path.figure.layout.shapes[1].x1 = path.alphas[k];
    if (!asked && plotted.has(plot)) {
      asked = true;
      requestAnimationFrame(() => { asked = false; plot.moveMark(1, path.alphas[Number(slider.value)]); });
    }
  }
  slider.addEventListener("input", update);
  root.querySelector(".to-chosen").addEventListener("click", () => { slider.value = path.chosen; update(); });
  if (which) which.addEventListener("change", () => open(Number(which.value)));
  whenSeen(plot, () => draw(plot, path.figure));
  open(0);
}
function readings(list, path, k) {
  const metric = path.metric.toUpperCase();
  const shown = [
    ...(path.by === "features" ? [] : [[path.by, path.alphas[k].toPrecision(3)]]),
    ["features", String(path.n_nonzero[k])],
    [`held-out ${metric}`, `${path.mean[k].toFixed(4)} ± ${path.standard_error[k].toFixed(4)}`],
    ...(path.test.length ? [[`test ${metric}`, path.test[k].toFixed(4)]] : []),
    ["relative gap", path.relative_gaps[k] === 0 ? "0" : path.relative_gaps[k].toExponential(1).replace("-", "−")],
  ];
  list.replaceChildren(...shown.map(([name, value]) =>
    element("div", {}, element("dt", {textContent: name}), element("dd", {textContent: value}))));
}
const used = (path, k) => new Set(path.points[k].map(([feature]) => feature));
function entered(path, k) {
  const before = k > 0 ? used(path, k - 1) : new Set();
  return [...used(path, k)].filter(feature => !before.has(feature));
}
function changes(path, k) {
  if (k === path.chosen) return "Chosen model: the best on held-out queries within the limits.";
  if (k === 0) return path.by === "features" ? "Fewest features." : "Strongest penalty.";
  const now = used(path, k), names = list => list.map(feature => path.features[feature]).join(", ") || "none";
  const left = [...used(path, k - 1)].filter(feature => !now.has(feature));
  return `Change from the previous point: added ${names(entered(path, k))}; removed ${names(left)}.`;
}
function weights(body, path, k) {
  const largest = Math.max(...path.points[k].map(([, weight]) => Math.abs(weight)), 1e-300);
  const fresh = new Set(entered(path, k));
  body.replaceChildren(...path.points[k].map(([feature, weight]) => {
    const span = element("span");
    bar(span, weight, largest);
    span.style.background = colourOf(path, feature) ?? OTHER;
    return element("tr", {className: k > 0 && fresh.has(feature) ? "entered" : ""},
      element("td", {className: "name", textContent: path.features[feature]}),
      element("td", {className: "number", textContent: minus((weight > 0 ? "+" : "") + weight.toPrecision(4))}),
      element("td", {}, element("div", {className: "bar"}, span)));
  }));
}
for (const root of all("[data-explorer]")) explore(root);

// --- gains and losses --------------------------------------------------------------------------------------
function gains(root) {
  const of = data.gains[root.dataset.gains], choice = root.querySelector("select"), plot = root.querySelector(".plot");
  function update() {
    const method = of.methods[choice ? choice.value : root.dataset.chosen];
    const changed = numbers(method.changed);  // null: equal to the baseline
    const rows = of.queries
      .map((query, k) => ({query, text: of.texts[k] ?? "", ours: changed[k] ?? of.theirs[k], theirs: of.theirs[k]}))
      .filter(row => row.theirs !== null && !isNaN(row.ours))
      .map(row => ({...row, change: row.ours - row.theirs}))
      .sort((a, b) => b.change - a.change);
    const moved = rows.filter(row => row.change !== 0);
    const better = moved.filter(row => row.change > 0).length, worse = moved.length - better;
    root.querySelector(".verdict").textContent =
      `${method.title}: ${better} queries better, ${rows.length - moved.length} equal, ${worse} worse than ${of.baseline}.`;
    queries(root.querySelector(".worst"), moved.filter(row => row.change < 0).slice(-WORST).reverse(), method.title, of.baseline);
    queries(root.querySelector(".best"), moved.filter(row => row.change > 0).slice(0, WORST), method.title, of.baseline);
    const figure = gainsFigure(of.figure, moved, root.querySelector(".verdict").textContent);
    if (plotted.has(plot)) draw(plot, figure);
    else whenSeen(plot, () => draw(plot, figure));
  }
  if (choice) choice.addEventListener("change", update);
  update();
}
function queries(table, rows, title, baseline) {
  const head = ["query", "change", title, baseline].map((text, k) =>
    element("th", {textContent: text, className: k ? "number" : ""}));
  const named = row => [row.query, ...(row.text ? [element("div", {className: "soft", textContent: row.text})] : [])];
  const line = row => element("tr", {}, element("td", {className: "name"}, ...named(row)),
    ...[signed(row.change), row.ours.toFixed(4), row.theirs.toFixed(4)].map(text =>
      element("td", {textContent: text, className: "number"})));
  const body = rows.length ? rows.map(line) : [element("tr", {}, element("td", {textContent: "none"}))];
  table.replaceChildren(element("tr", {}, ...head), ...body);
}
function gainsFigure(frame, rows, alt) {
  const up = "#3b8fd6", down = "#c87b00";
  const bars = {
    ...frame.data[0],
    x: rows.map((_, k) => k + 1),
    y: rows.map(row => row.change),
    customdata: rows.map(row => [row.query, row.ours, row.theirs]),
    marker: {color: rows.map(row => row.change > 0 ? up : down)},
  };
  return {data: [bars], layout: {...frame.layout, alt}};
}
for (const root of all("[data-gains]")) gains(root);
