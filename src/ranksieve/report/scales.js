"use strict";
// Elements, text, numbers and axes for figure.js.
const NAMESPACE = "http://www.w3.org/2000/svg";
const SUPERSCRIPT = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== "") made.setAttribute(name, typeof value === "number" ? +value.toFixed(2) : value);
  made.append(...children);
  return made;
}
const numbers = text => text.split(",").map(number => number === "" ? null : Number(number));  // the inverse of pack in page.py
const minus = text => text.replace("-", "−");

// --- text and numbers --------------------------------------------------------------------------------------
const pen = document.createElement("canvas").getContext("2d");
function widthOf(text, size) {
  pen.font = `${size}px system-ui, sans-serif`;
  return pen.measureText(text).width;
}
function cut(text, width, size) {  // shortens text in the middle until it fits
  if (widthOf(text, size) <= width) return text;
  let half = Math.floor(Math.min(text.length, width) / 2);  // no letter is narrower than a pixel
  const shorter = () => `${text.slice(0, half)}…${text.slice(1 - half)}`;
  while (half > 2 && widthOf(shorter(), size) > width) half--;
  return shorter();
}
function format(value, spec = "") {  // like Python's formats .4f, +.4f, .3g, .2e and .0%
  if (typeof value !== "number") return String(value ?? "–");
  if (spec === "") return minus(String(value));
  const [, sign, digits, kind] = /^(\+?)\.(\d+)([fge%])$/.exec(spec), n = Number(digits);
  const rounded = kind === "g" ? Number(value.toPrecision(n)) : value;
  const text = {
    f: () => value.toFixed(n),
    e: () => value.toExponential(n),
    "%": () => `${(100 * value).toFixed(n)} %`,
    g: () => rounded !== 0 && Math.abs(rounded) < 1e-4 ? rounded.toExponential() : String(rounded),
  }[kind]();
  return (sign && value > 0 ? "+" : "") + minus(text);
}
function fill(template, facts) {  // {x}, {y:.4f}, {data.0}
  return template.replace(/\{(\w+)(?:\.(\d+))?(?::([^}]+))?\}/g, (_, name, k, spec) =>
    format(k === undefined ? facts[name] : facts[name][k], spec));
}

// --- axes --------------------------------------------------------------------------------------------------
function limits(axis, values) {
  if (axis.range) return axis.range;
  const shown = values.filter(value => Number.isFinite(value) && (axis.type !== "log" || value > 0))
    .map(value => axis.type === "log" ? Math.log10(value) : value);
  if (!shown.length) return [0, 1];
  let low = shown.reduce((a, b) => Math.min(a, b)), high = shown.reduce((a, b) => Math.max(a, b));
  const fixed = axis.rangemode === "tozero" && low >= 0;
  if (fixed) low = 0;
  const margin = 0.04 * (high - low) || 0.05 * Math.abs(high) || 1;
  return [fixed ? 0 : low - margin, high + margin];
}
function steps(low, high, most, least = 0) {  // steps of 1, 2 or 5 times a power of ten
  const rough = Math.max((high - low) / most, 1e-300), power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(power * [1, 2, 5, 10].find(m => m * power >= rough * 0.999), least);
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) values.push(k * step);
  return [values, step];
}
function linearTicks(axis, low, high, most) {
  if (axis.tickvals) return axis.tickvals.map((value, k) => [value, axis.ticktext[k]]);
  const [values, step] = steps(low, high, most, axis.dtick), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const plain = value => axis.tickformat ? format(value, axis.tickformat)
    : minus(value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}));
  return values.map(value => [value, plain(Math.abs(value) < step / 1e6 ? 0 : value)]);
}
function logTicks(axis, low, high, most) {  // low and high are exponents
  if (high - low < 2.2) {
    const fine = [];
    for (let k = Math.floor(low); k <= high; k++) for (const m of [1, 2, 5]) fine.push(m * 10 ** k);
    return fine.filter(v => Math.log10(v) >= low && Math.log10(v) <= high).map(v => [v, format(v, ".1g")]);
  }
  const stride = Math.max(axis.dtick ?? 1, Math.ceil((high - low) / most)), ticks = [];
  for (let k = Math.ceil(low / stride) * stride; k <= high; k += stride)
    ticks.push([10 ** k, `10${[...String(k)].map(c => SUPERSCRIPT[c]).join("")}`]);
  return ticks;
}
function scaleOf(axis, values, from, to, most) {
  if (axis.type === "category") {
    const names = axis.categories ?? [...new Set(values)], index = new Map(names.map((name, k) => [name, k]));
    const at = name => from + (to - from) * (index.get(name) + 0.5) / names.length;
    return {at, ticks: names.map(name => [name, name]), band: Math.abs(to - from) / names.length, names};
  }
  const [low, high] = limits(axis, values), log = axis.type === "log";
  const [first, last] = axis.reversed ? [to, from] : [from, to];
  const at = value => first + (last - first) * ((log ? Math.log10(value) : value) - low) / (high - low);
  return {at, ticks: (log ? logTicks : linearTicks)(axis, low, high, most), low, high, band: Math.abs((to - from) / (high - low))};
}
