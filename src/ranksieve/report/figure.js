"use strict";
// Figures as SVG: lines, bands, markers, bars, cells and radar charts, with a tooltip for the point under the pointer.
// page.py defines the figures. Colours of text and grid come from the page, so they follow its colour scheme.
const DASHES = {dash: "7 4", dot: "2 3", dashdot: "7 3 2 3"};
const HOVER_DISTANCE = 40;  // pixels
const GAP = 6, RIGHT = 14, TOP = 14, ABOVE = 26;  // ABOVE: space for annotations above the figure
const MIN_SHADE = 0.25;  // keeps the smallest weight distinguishable from no weight
const LONGEST_BELOW = 170, WIDEST_SHARE = 0.36;  // space for names below and left of a figure

// --- traces: each returns its drawing and a function that finds the point under the pointer -----------------
const isFinitePoint = (x, y) => Number.isFinite(x) && Number.isFinite(y);
function pathOf(points, stepped) {
  let path = "", begun = false;
  for (const [x, y] of points) {
    if (!isFinitePoint(x, y)) { begun = false; continue; }
    path += begun ? (stepped ? `H${x.toFixed(2)}V${y.toFixed(2)}` : `L${x.toFixed(2)} ${y.toFixed(2)}`) : `M${x.toFixed(2)} ${y.toFixed(2)}`;
    begun = true;
  }
  return path;
}
function polygon(x, y, r, corners, turn = -90, inner = 1) {
  const n = inner === 1 ? corners : 2 * corners;
  return pathOf([...Array(n).keys()].map(k => {
    const angle = (turn + 360 * k / n) * Math.PI / 180, radius = k % 2 && inner !== 1 ? inner * r : r;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  })) + "Z";
}
const SYMBOLS = {
  circle: (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  square: (x, y, r) => polygon(x, y, 1.2 * r, 4, -45),
  diamond: (x, y, r) => polygon(x, y, 1.3 * r, 4),
  "triangle-up": (x, y, r) => polygon(x, y, 1.3 * r, 3),
  "triangle-down": (x, y, r) => polygon(x, y, 1.3 * r, 3, 90),
  pentagon: (x, y, r) => polygon(x, y, 1.2 * r, 5),
  star: (x, y, r) => polygon(x, y, 1.4 * r, 5, -90, 0.45),
  x: (x, y, r) => polygon(x, y, 1.4 * r, 4, 45, 0.35),
};
function symbol(marker, x, y, k = 0) {
  const [kind, open] = (marker.symbol ?? "circle").split("-open"), r = (marker.size ?? 6) / 2;
  const colour = Array.isArray(marker.color) ? marker.color[k] : marker.color;
  const look = open === undefined ? {fill: colour} : {fill: "none", stroke: colour, "stroke-width": 2};
  return svg("path", {class: "point", d: SYMBOLS[kind](x, y, r), opacity: marker.opacity, ...look});
}
const stroke = line => ({stroke: line.color, "stroke-width": line.width ?? 2, "stroke-dasharray": DASHES[line.dash], fill: "none"});
function nearest(points, px, py) {
  let best = null;
  for (const point of points) {
    const away = Math.hypot(point.px - px, point.py - py);
    if (best === null || away < best.away) best = {...point, away};
  }
  return best;
}
function factsOf(trace, k) {
  return {name: trace.name, x: trace.x[k], y: trace.y[k], text: trace.text?.[k], data: trace.customdata?.[k]};
}
const DRAW = {
  scatter(trace, x, y) {
    const mode = trace.mode ?? "lines", group = svg("g", {class: "trace", opacity: trace.opacity});
    const points = trace.x.map((value, k) => [value === null ? NaN : x.at(value), trace.y[k] === null ? NaN : y.at(trace.y[k])]);
    if (mode.includes("lines")) group.append(svg("path", {d: pathOf(points, trace.line.shape === "hv"), ...stroke(trace.line)}));
    const seen = points.map(([px, py], k) => ({px, py, k})).filter(p => isFinitePoint(p.px, p.py));
    for (const {px, py, k} of trace.error_y ? seen : []) {
      const half = Math.abs(y.at(trace.error_y[k]) - y.at(0));
      group.append(svg("path", {d: `M${px} ${py - half}V${py + half}`, stroke: trace.line.color, fill: "none"}));
    }
    if (mode.includes("markers")) for (const {px, py, k} of seen) group.append(symbol(trace.marker, px, py, k));
    return [group, (px, py) => nearest(seen, px, py), k => factsOf(trace, k)];
  },
  band(trace, x, y) {
    const edge = values => trace.x.map((value, k) => [x.at(value), y.at(values[k])]);
    const path = pathOf([...edge(trace.low), ...edge(trace.high).reverse()]);
    return [svg("path", {class: "trace band", d: `${path}Z`, fill: trace.color})];
  },
  bar(trace, x, y) {
    const group = svg("g", {class: "trace bars"}), wide = Math.max(x.band * (1 - (trace.gap ?? 0.2)), 0.5), seen = [];
    trace.x.forEach((value, k) => {
      const px = x.at(value), py = y.at(trace.y[k]), zero = y.at(0);
      const fill = Array.isArray(trace.marker.color) ? trace.marker.color[k] : trace.marker.color;
      group.append(svg("rect", {class: "point", x: px - wide / 2, width: wide, y: Math.min(py, zero), height: Math.abs(py - zero), fill}));
      seen.push({px, py, k});
    });
    const find = px => nearest(seen.map(point => ({...point, py: 0})), px, 0);
    return [group, px => { const hit = find(px); return hit && {...hit, py: seen[hit.k].py}; }, k => factsOf(trace, k)];
  },
  steps(trace, x, y) {  // y[k] from x[k] to x[k + 1]: a line, or bars if it has a colour to fill them with
    const edges = trace.x.map(x.at), tops = trace.y.map(y.at), points = tops.flatMap((top, k) => [[edges[k], top], [edges[k + 1], top]]);
    const bars = tops.map((top, k) => {
      const wide = edges[k + 1] - edges[k], gap = Math.min(2, 0.08 * wide);
      return `M${(edges[k] + gap).toFixed(2)} ${y.at(0).toFixed(2)}V${top.toFixed(2)}h${(wide - 2 * gap).toFixed(2)}V${y.at(0).toFixed(2)}Z`;
    });
    const drawn = trace.fill ? svg("path", {class: "trace", d: bars.join(""), fill: trace.fill}) : svg("path", {class: "trace", d: pathOf(points), ...stroke(trace.line)});
    const find = px => {
      const k = tops.findIndex((_, j) => px >= edges[j] && px <= edges[j + 1]);
      return k < 0 ? null : {px: trace.fill ? (edges[k] + edges[k + 1]) / 2 : px, py: tops[k], away: 0, k};
    };
    return [drawn, find, k => factsOf(trace, k)];
  },
  cells(trace, x, y) {
    const group = svg("g", {class: "trace cells"}), paths = new Map();
    const wide = x.band - (x.band > 4 ? 1 : 0), high = y.band - (y.band > 4 ? 1 : 0);
    const rows = trace.values.map(numbers);  // null: no weight
    rows.forEach((row, r) => {
      const largest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      row.forEach((value, c) => {
        if (value === null) return;
        const shade = Math.sign(value) * (MIN_SHADE + (1 - MIN_SHADE) * Math.abs(value) / largest);
        const colour = mixed(trace.colours, Math.round(20 * shade) / 20);
        const corner = `M${(x.at(trace.x[c]) - wide / 2).toFixed(1)} ${(y.at(r) - high / 2).toFixed(1)}`;
        paths.set(colour, `${paths.get(colour) ?? ""}${corner}h${wide.toFixed(1)}v${high.toFixed(1)}h${-wide.toFixed(1)}z`);
      });
    });
    for (const [fill, d] of paths) group.append(svg("path", {d, fill}));
    const centres = trace.x.map(name => x.at(name));
    const find = (px, py) => {
      const c = centres.findIndex(centre => Math.abs(centre - px) <= x.band / 2);
      const r = trace.rows.findIndex((_, k) => Math.abs(y.at(k) - py) <= y.band / 2);
      return c < 0 || r < 0 || !rows[r][c] ? null : {px: centres[c], py: y.at(r), away: 0, k: [r, c]};
    };
    return [group, find, ([r, c]) => ({x: trace.x[c], row: trace.rows[r], value: rows[r][c]})];
  },
};
function mixed(stops, value) {  // stops: [[value, "#rrggbb"], …] with rising values
  const k = Math.max(1, stops.findIndex(([at]) => at >= value)), [[low, a], [high, b]] = [stops[k - 1], stops[k]];
  const share = (value - low) / (high - low), part = (c, j) => parseInt(c.slice(1 + 2 * j, 3 + 2 * j), 16);
  return `rgb(${[0, 1, 2].map(j => Math.round(part(a, j) + share * (part(b, j) - part(a, j)))).join(",")})`;
}

// --- figures -------------------------------------------------------------------------------------------------
const axisKey = (letter, of) => `${letter}axis${(of ?? letter).slice(1)}`;
function drawFigure(container, figure, {width, small, hidden}) {
  const shown = {...figure, data: figure.data.filter(trace => !hidden.has(trace.legendgroup))};
  const size = small ? 11 : 13, picture = svg("svg", {class: "main-svg", width, role: "img", "font-size": size});
  container.figure = shown;
  container.replaceChildren(...(figure.layout.showlegend ? [keyOf(shown.data)] : []), picture);
  const drawing = (figure.layout.net ? drawNet : drawPanels)(picture, shown, width, size, small);
  picture.setAttribute("height", drawing.height);
  picture.setAttribute("viewBox", `0 0 ${width} ${drawing.height}`);  // printed, it shrinks to the paper
  picture.setAttribute("aria-label", figure.layout.alt ?? drawing.label);
  container.axes = drawing.axes;
  container.moveMark = drawing.moveMark;
  watchPointer(picture, drawing.targets);
}
function drawPanels(picture, {data, layout}, width, size, small) {
  const keys = letter => Object.keys(layout).filter(key => key.startsWith(`${letter}axis`));
  const named = layout.xaxis.type === "category", names = named ? layout.xaxis.categories ?? [...new Set(data.flatMap(t => t.x))] : [];
  const space = named ? Math.max(...names.map(name => widthOf(cut(name, LONGEST_BELOW, size - 2), size - 2)), 0) + GAP : size + GAP;
  const bottom = space + (layout.xaxis.title ? size + 2 * GAP : GAP), top = layout.annotations?.length ? ABOVE : TOP;
  const height = Math.round(layout.height + (named ? space : 0)), inner = height - top - bottom;
  const values = (trace, letter) => letter === "x" ? trace.x : trace.type === "band" ? [...trace.low, ...trace.high]
    : [...(trace.y ?? []), ...(trace.error_y ?? []).flatMap((e, k) => [trace.y[k] - e, trace.y[k] + e]), ...(trace.type === "bar" ? [0] : [])];
  const of = (key, letter) => data.filter(t => axisKey(letter, t[`${letter}axis`]) === key).flatMap(t => values(t, letter));
  const axes = {};
  for (const key of keys("y")) {
    const [low, high] = layout[key].domain ?? [0, 1], from = top + inner * (1 - low), to = top + inner * (1 - high);
    axes[key] = {...scaleOf(layout[key], of(key, "y"), from, to, Math.max(2, Math.min(7, (from - to) / 38))), from, to};
  }
  const widest = WIDEST_SHARE * width, label = text => cut(text, widest, size - 1);
  const left = Math.max(...keys("y").flatMap(key => axes[key].ticks.map(([, text]) => widthOf(label(text), size - 1)))) + 2 * GAP
    + (keys("y").some(key => layout[key].title) ? size + GAP : 0);
  for (const key of keys("x")) {
    const wide = width - RIGHT - left, [from, to] = (layout[key].domain ?? [0, 1]).map(share => left + share * wide);
    axes[key] = {...scaleOf(layout[key], of(key, "x"), from, to, Math.max(3, (to - from) / 80)), from, to};
  }
  const frame = {left, right: width - RIGHT, top, bottom: height - bottom, size, label, space};
  for (const key of keys("y")) drawY(picture, layout[key], axes[key], frame);
  for (const key of keys("x")) drawX(picture, layout[key], axes, key, {...frame, left: axes[key].from, right: axes[key].to}, data);
  const marks = drawShapes(picture, layout.shapes ?? [], axes, frame), targets = [];
  for (const trace of data) {
    const x = axes[axisKey("x", trace.xaxis)], y = axes[axisKey("y", trace.yaxis)];
    const [drawn, find, facts] = DRAW[trace.type](trace, x, y);
    picture.append(drawn);
    if (trace.hover) targets.push({find: (px, py) => py <= y.from && py >= y.to ? find(px, py) : null, text: k => fill(trace.hover, facts(k))});
  }
  for (const mark of marks) picture.append(mark.drawn);
  for (const note of layout.annotations ?? []) if (!(small && note.name === "wide")) drawNote(picture, note, axes, frame);
  const moveMark = (k, x) => { marks[k].place({...layout.shapes[k], x0: x, x1: x}); layout.shapes[k].x0 = layout.shapes[k].x1 = x; };
  return {height, axes, targets, moveMark, label: keys("y").map(key => layout[key].title).filter(Boolean).join("; ")};
}
function drawY(picture, axis, scale, {left, right, size, label}) {
  const group = svg("g", {class: "yaxis"});
  for (const [value, text] of scale.ticks) {
    const y = scale.at(value);
    if (axis.showgrid !== false) group.append(svg("path", {class: "grid", d: `M${left} ${y}H${right}`}));
    const words = svg("text", {x: left - GAP, y: y + size / 3, "text-anchor": "end", "font-size": size - 1}, label(text));
    if (label(text) !== text) words.append(svg("title", {}, text));
    group.append(svg("g", {class: "ytick"}, words));
  }
  if (axis.zeroline && scale.low < 0 && scale.high > 0) group.append(svg("path", {class: "zero", d: `M${left} ${scale.at(0)}H${right}`}));
  const middle = (scale.from + scale.to) / 2, title = cut(axis.title, scale.from - scale.to + 2 * size, size);
  if (axis.title) group.append(svg("text", {class: "title", transform: `translate(${size} ${middle.toFixed(1)}) rotate(-90)`, "text-anchor": "middle"}, title));
  picture.append(group);
}
function drawX(picture, axis, axes, key, {left, right, size, space}, data) {
  const scale = axes[key], group = svg("g", {class: "xaxis"}), below = axes[axisKey("y", axis.anchor)].from;
  const panels = [...new Set(data.filter(t => axisKey("x", t.xaxis) === key).map(t => axisKey("y", t.yaxis)))].map(name => axes[name]);
  const every = scale.names ? Math.ceil((size - 2) / scale.band) : 1;
  let labelled = null;
  scale.ticks.forEach(([value, text], k) => {
    const x = scale.at(value), half = widthOf(text, size - 1) / 2;
    if (axis.showgrid !== false) for (const {from, to} of panels) group.append(svg("path", {class: "grid", d: `M${x.toFixed(2)} ${from}V${to}`}));
    const crowded = labelled && Math.abs(x - labelled.x) < half + labelled.half + GAP || x + half > right + RIGHT;
    if (k % every || !scale.names && crowded) return;
    labelled = {x, half};
    const turned = {transform: `translate(${(x + size / 4).toFixed(2)} ${below + GAP}) rotate(-90)`, "text-anchor": "end", "font-size": size - 2};
    const flat = {x, y: below + size + GAP / 2, "text-anchor": "middle", "font-size": size - 1};
    const words = svg("text", scale.names ? turned : flat, scale.names ? cut(text, LONGEST_BELOW, size - 2) : text);
    if (scale.names) words.append(svg("title", {}, text));
    group.append(svg("g", {class: "xtick"}, words));
  });
  for (const {from} of panels) group.append(svg("path", {class: "grid", d: `M${left} ${from}H${right}`}));
  if (axis.title) group.append(svg("text", {class: "title", x: (left + right) / 2, y: below + space + size + GAP, "text-anchor": "middle"}, axis.title));
  picture.append(group);
}
function drawShapes(picture, shapes, axes, {left, right, top, bottom}) {
  return shapes.map(shape => {
    const line = shape.type === "line", drawn = svg(line ? "line" : "rect", {class: "mark", ...(line ? stroke(shape.line) : {fill: shape.fillcolor, opacity: shape.opacity})});
    const place = of => {
      const [x0, x1] = of.xref === "paper" ? [left, right] : [axes.xaxis.at(of.x0), axes.xaxis.at(of.x1)];
      const [y0, y1] = of.yref === "paper" ? [bottom, top] : [axes.yaxis.at(of.y0), axes.yaxis.at(of.y1)];
      const ends = line ? {x1: x0, x2: x1, y1: y0, y2: y1} : {x: x0, width: x1 - x0, y: Math.min(y0, y1), height: Math.abs(y1 - y0)};
      for (const [name, value] of Object.entries(ends)) drawn.setAttribute(name, value.toFixed(2));
    };
    place(shape);
    return {drawn, place};
  });
}
const ANCHORS = {left: "start", right: "end"};
function drawNote(picture, note, axes, {right, top, size}) {
  const x = note.xref === "paper" ? right : axes.xaxis.at(note.x), y = note.yref === "paper" ? top : axes.yaxis.at(note.y);
  const [dx, dy] = [note.ax ?? 0, note.ay ?? -GAP], words = {x: x + dx, y: y + dy, "text-anchor": ANCHORS[note.xanchor] ?? "middle", "font-size": size - 2};
  if (note.ay) picture.append(svg("path", {class: "grid", d: `M${x} ${y - GAP}L${x + dx} ${y + dy + 3}`}));
  picture.append(svg("text", {class: "note", ...words}, note.text));
}
function drawNet(picture, {data, layout}, width, size, small) {
  const height = small ? Math.min(layout.height, width) : layout.height, around = data[0].theta.slice(0, -1);
  const cx = width / 2, cy = height / 2, radius = Math.max(40, Math.min(cx - (small ? 84 : 130), cy - 2.5 * size));
  const angle = k => (360 * k / around.length - 90) * Math.PI / 180, at = (k, r) => [cx + radius * r * Math.cos(angle(k)), cy + radius * r * Math.sin(angle(k))];
  for (const r of [0.25, 0.5, 0.75, 1]) {
    picture.append(svg("circle", {class: "grid", cx, cy, r: radius * r}));
    if (r < 1) picture.append(svg("g", {class: "xtick"}, svg("text", {x: cx + 3, y: cy - radius * r - 2, "font-size": size - 3}, format(r, ".0%"))));
  }
  around.forEach((name, k) => {
    const [x, y] = at(k, 1), [lx, ly] = at(k, 1 + GAP / radius), side = Math.cos(angle(k));
    picture.append(svg("path", {class: "grid", d: `M${cx} ${cy}L${x.toFixed(2)} ${y.toFixed(2)}`}));
    const words = {x: lx, y: ly + size / 3, "text-anchor": Math.abs(side) < 0.1 ? "middle" : side > 0 ? "start" : "end", "font-size": small ? 9 : size - 2};
    picture.append(svg("text", words, cut(name, small ? 76 : 122, size - 2)));
  });
  const targets = data.map(trace => {
    const points = trace.r.map((r, k) => r === null ? [NaN, NaN] : at(k, r)), group = svg("g", {class: "trace"});
    group.append(svg("path", {d: pathOf(points), ...stroke(trace.line), fill: trace.fillcolor}));
    const seen = points.map(([px, py], k) => ({px, py, k})).filter(p => isFinitePoint(p.px, p.py));
    for (const {px, py} of seen) group.append(symbol(trace.marker, px, py));
    picture.append(group);
    return {find: (px, py) => nearest(seen, px, py), text: k => fill(trace.hover, {name: trace.name, theta: trace.theta[k], r: trace.r[k]})};
  });
  return {height, axes: {}, targets, label: "radar chart of " + data.map(trace => trace.name).join(", ")};
}
function keyOf(traces) {
  const entries = traces.filter(trace => trace.name && trace.showlegend !== false);
  return element("div", {className: "key"}, ...entries.map(trace => {
    const sample = svg("svg", {width: 24, height: 12}), mode = trace.mode ?? "lines";
    if (mode.includes("lines")) sample.append(svg("path", {d: "M0 6H24", ...stroke(trace.line)}));
    if (mode.includes("markers")) sample.append(symbol({...trace.marker, size: Math.min(trace.marker.size ?? 6, 10), opacity: 1}, 12, 6));
    return element("span", {}, sample, trace.name);
  }));
}

// --- tooltips ------------------------------------------------------------------------------------------------
const tip = element("div", {className: "tip", hidden: true});
document.body.append(tip);
function watchPointer(picture, targets) {
  const halo = svg("circle", {class: "halo", r: 6, visibility: "hidden"});
  picture.append(halo);
  const leave = () => { tip.hidden = true; halo.setAttribute("visibility", "hidden"); };
  const look = event => {
    const box = picture.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    const hits = targets.map(target => [target, target.find(px, py)]).filter(([, hit]) => hit && hit.away < HOVER_DISTANCE);
    if (!hits.length) return leave();
    const [target, hit] = hits.reduce((a, b) => b[1].away <= a[1].away ? b : a);
    tip.textContent = target.text(hit.k);
    tip.hidden = false;
    const right = Math.min(box.left + hit.px + 12, document.documentElement.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(4, right) + scrollX}px`;
    tip.style.top = `${Math.max(box.top + hit.py - tip.offsetHeight - 10, 4) + scrollY}px`;
    for (const [name, value] of Object.entries({cx: hit.px, cy: hit.py, visibility: "visible"})) halo.setAttribute(name, value);
  };
  for (const kind of ["pointermove", "pointerdown"]) picture.addEventListener(kind, look);
  picture.addEventListener("pointerleave", leave);
}
