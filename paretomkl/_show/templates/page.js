"use strict";
(() => {
// ------------------------------------------------------------------------------------------------ the data
// arrays are indexed by task or kernel first and by point of the path second; null means no number
const D = JSON.parse(document.getElementById("data").textContent);
const NOUN = D.noun;  // what a task is called
const N = D.x.length, T = D.tasks.length, ONE = D.reference;
const FEW = 7;  // up to this many tasks get their own colour and legend entry
const $ = id => document.getElementById(id);
const range = n => [...Array(n).keys()];
const clamp = (v, low, high) => Math.min(high, Math.max(low, v));
const sum = values => values.reduce((a, b) => a + b, 0);
const against = (rows, f) => rows.map(row => row.map(v => v == null || row[ONE] == null ? null : f(v, row[ONE])));
const CHANGE = against(D.objectives, (v, one) => v / one - 1);
const GAIN = D.scores && against(D.scores, (v, one) => v - one);

// ------------------------------------------------------------------------------------------------ numbers
const NONE = "–";
const minus = text => text.replace("-", "−");
const plus = (v, text) => (v > 0 && /[1-9]/.test(text) ? "+" : "") + text;
function digits(v, n) {
  if (v == null) return NONE;
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return minus(v.toExponential(Math.max(0, n - 3)).replace("e+", "e"));
  return minus(size >= 10 ** (n - 1) ? v.toFixed(0) : v.toPrecision(n));
}
const objective = v => digits(v, 5);
function percent(v) {
  if (v == null) return NONE;
  const size = Math.abs(100 * v);
  const places = size >= 1 || size === 0 ? 1 : size >= 0.1 ? 2 : 3;
  return minus((100 * v).toFixed(places)).replace(/^−(0\.?0*)$/, "$1") + "\u00a0%";
}
const change = v => v == null ? NONE : plus(v, percent(v));
const UNDEFINED = "not defined";
const MEASURE = D.measure.name, SHARE_OF_ONE = D.measure.percent, IN_UNITS = D.measure.inUnits;
const scoreText = v => IN_UNITS ? digits(v, 4) : minus(v.toFixed(3));
const score = v => v == null ? UNDEFINED : SHARE_OF_ONE ? (100 * v).toFixed(1) + "\u00a0%" : scoreText(v);
const endText = v => SHARE_OF_ONE ? (100 * v).toFixed(1) : scoreText(v);
const withInterval = (v, low, high) => score(v) + (v == null || low == null || high == null ? "" : ` (${endText(low)}\u00a0to\u00a0${endText(high)})`);
const ofTask = (t, i) => T === 1 && D.overall ? ofAll(i) : withInterval(D.scores[t][i], D.low[t][i], D.high[t][i]);
const ofAll = i => withInterval(D.overall[i], D.overallLow[i], D.overallHigh[i]);
function lowest(i) {  // the task with the lowest held-out score
  const known = !D.scores || T < 2 ? [] : range(T).filter(t => D.scores[t][i] != null);
  return known.length < 2 ? null : known.reduce((a, b) => D.scores[b][i] < D.scores[a][i] ? b : a);
}
const rowsText = n => n == null ? "" : `${n}\u00a0row${n === 1 ? "" : "s"}`;
const points = v => v == null ? NONE : plus(v, (SHARE_OF_ONE ? minus((100 * v).toFixed(1)) : scoreText(v)).replace(/^−(0\.0+)$/, "$1"));
const share = v => (v >= 0.0005 ? (100 * v).toFixed(1) : v > 0 ? "<0.1" : "0") + "\u00a0%";
const gap = v => digits(v, 4);
const brief = (t, n = 24) => D.brief[Math.max(...Object.keys(D.brief).map(Number).filter((l, k) => !k || l <= n))][t];

// ------------------------------------------------------------------------------------------------ colours
// each colour has one meaning: warm colours are tasks, green to grey-blue are kernels and sources, blue is p and what
// moves it, violet is what cross-validation chooses
const HUES = [  // on a light and on a dark background, and the dashes of the line
  ["#c98500", "#f5b041", ""], ["#a3123f", "#ff7a9c", ""], ["#4a2c17", "#e8d5c0", "8 3"], ["#e0709a", "#ffb3cd", "2 3"],
  ["#7d7a00", "#d6d24a", "10 3 2 3"], ["#d9480f", "#ff8d50", "5 2"], ["#8a8a8a", "#b0b0b0", "1 3"],
];
const HARDER = [["#c98500", "#cf4a1d", "#8d1038", "#3d0a24"], ["#8a4b2a", "#d8683a", "#ffa552", "#ffe9a8"]];  // from easy
const LARGER = [["#6aa5df", "#0a3f7a"], ["#33658f", "#bfe0ff"]];  // exponents
const AREAS = [  // on a light and on a dark background; the last is that of the others
  ["#14532d", "#3a9a5c"], ["#9bd4a0", "#c4e8c7"], ["#0f8a80", "#14b8aa"], ["#c5e86c", "#d3ef6e"], ["#4a5f78", "#5f7fae"],
  ["#8fe3e0", "#8ff0f0"], ["#c4c9cf", "#878f99"],
];
function between(colors, t) {
  const at = clamp(t, 0, 1) * (colors.length - 1), k = Math.min(Math.floor(at), colors.length - 2), part = at - k;
  const channel = (c, from) => parseInt(c.slice(from, from + 2), 16);
  const mixed = [1, 3, 5].map(o => Math.round((1 - part) * channel(colors[k], o) + part * channel(colors[k + 1], o)));
  return `rgb(${mixed.join(",")})`;
}
const ramp = (t, colors = HARDER) => colors.map(some => between(some, t));  // stands out most at t = 1 on either background
const ranks = values => {
  const order = range(values.length).sort((a, b) => values[a] - values[b]), rank = [];
  order.forEach((k, at) => { rank[k] = values.length > 1 ? at / (values.length - 1) : 1; });
  return rank;
};
const difficulty = ranks(D.difficulty);
const taskColors = range(T).map(t => T <= FEW ? HUES[t] : ramp(Math.round((FEW - 1) * difficulty[t]) / (FEW - 1)));
const NUMBER = /((?:[×=]\s?)?[-−+]?\d[\d.,]*(?:e[-−+]?\d+)?)/;
const whole = name =>  // a name whose numbers do not break across lines
  name.split(NUMBER).filter(Boolean).map(part => NUMBER.test(part) ? make("span", { className: "whole", textContent: part }) : part);
const colored = (node, [light, dark]) => {
  node.classList.add("c");
  node.style.setProperty("--l", light);
  node.style.setProperty("--d", dark);
  return node;
};

// ------------------------------------------------------------------------------------------------ elements
function make(tag, props = {}, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
}
function draw(parent, tag, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
function lineKey(colors) {  // a short piece of a task's line, for legends
  const svg = draw(make("span", { className: "line-key" }), "svg", { width: 20, height: 10, "aria-hidden": "true" });
  colored(draw(svg, "path", { class: "line", d: "M0 5H20", "stroke-dasharray": colors[2] || "none" }), colors);
  return svg.parentNode;
}
const rampKey = (from, to, colors) =>
  make("span", { className: "ramp" }, from, make("span", {}, ...range(FEW).map(k => colored(make("i"), ramp(k / (FEW - 1), colors)))), to);
const swatch = (colors, extra = "") => {
  const node = make("span", { className: "swatch " + extra });
  return colors ? colored(node, colors) : node;
};

// ------------------------------------------------------------------------------------------------ the state
const S = { i: D.start, hover: { task: null, kernel: null, source: null }, marked: { task: new Set(), kernel: new Set(), source: new Set() }, find: "" };
const views = [];  // each may have redraw(), move() for a new p, and paint() for new marks

function setP(i) {
  i = clamp(i, 0, N - 1);
  if (i === S.i) return;
  S.i = i;
  move();
}
function move() {
  showP();
  views.forEach(view => view.move && view.move());
  clearTimeout(move.later);  // put p into the address once it stops moving
  move.later = setTimeout(() => {
    try { history.replaceState(null, "", "#p=" + addressOf(S.i)); } catch { /* in a frame */ }
  }, 300);
}
const addressOf = i => D.codeP[i].replace(/^float\("(.*)"\)$/, "$1");
function hover(kind, k) {
  if (S.hover[kind] === k) return;
  S.hover[kind] = k;
  repaint();
}
function mark(kind, k) {
  const marked = S.marked[kind];
  if (!marked.delete(k)) marked.add(k);
  repaint();
}
const repaint = () => views.forEach(view => view.paint && view.paint());
const matches = t => D.tasks[t].toLowerCase().includes(S.find);
function hot(kind) {  // the set to highlight, or null for none
  const set = new Set(S.marked[kind]);
  if (kind === "task" && S.find) range(T).filter(matches).forEach(t => set.add(t));
  if (S.hover[kind] != null) set.add(S.hover[kind]);
  return set.size ? set : null;
}

// ------------------------------------------------------------------------------------------------ the tip
const tip = $("tip");
function showTip(x, y, title, lines) {
  tip.replaceChildren(make("b", { textContent: title }), ...lines.map(text => make("div", { textContent: text })));
  tip.classList.add("on");
  const box = tip.getBoundingClientRect();
  tip.style.left = clamp(x + 14, 4, Math.max(4, innerWidth - box.width - 4)) + "px";
  tip.style.top = (y - box.height - 12 > 4 ? y - box.height - 12 : y + 18) + "px";
}
const hideTip = () => tip.classList.remove("on");
const pText = i => "p = " + D.p[i];

// ------------------------------------------------------------------------------------------------ scales
function linearTicks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find(f => f * power >= raw * 0.999));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(+(k * step).toPrecision(12));
  return ticks;
}
function logTicks(low, high) {
  const all = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) for (const f of [1, 2, 5]) all.push(f * 10 ** e);
  const inside = all.filter(v => v >= low * 0.999 && v <= high * 1.001);
  const decades = inside.filter(v => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9);
  return decades.length >= 4 ? decades : inside;
}
function valueScale(values, { log = false, least = 0, include = [], bottom = null, whole = null, zoomed = false }, top, base, count) {
  const known = values.concat(include).filter(v => v != null && (!log || v > 0));
  let low = Math.min(...known), high = Math.max(...known);
  if (!known.length) [low, high] = [0, 1];
  const forward = log ? Math.log10 : v => v;
  let [a, b] = [forward(low), forward(high)];
  if (b - a < least) [a, b] = [(a + b - least) / 2, (a + b + least) / 2];
  if (b === a) [a, b] = [a - 0.5, b + 0.5];
  const pad = 0.05 * (b - a);
  [a, b] = whole && !zoomed ? [Math.min(low, whole[0]), Math.max(high, whole[1])] : [bottom == null ? a - pad : bottom, b + pad];
  const inverse = log ? v => 10 ** v : v => v;
  const ticks = log ? logTicks(inverse(a), inverse(b)) : linearTicks(a, b, count);
  return { ticks, log, y: v => base - (forward(v) - a) / (b - a) * (base - top), inverse: y => inverse(a + (base - y) / (base - top) * (b - a)) };
}
const wholeRange = (spec, values) => {
  const known = values.filter(v => v != null).concat(spec.whole);
  return `from ${spec.tick(Math.min(...known))} to ${spec.tick(Math.max(...known))}`;
};
let onPaper = false;  // in print, charts are drawn small so that their text stays readable
const drawingWidth = host => onPaper ? (host.closest(".wide") ? 780 : 390) : Math.max(280, host.clientWidth || 560);
const textWidth = text => 6.6 * text.length;

// ------------------------------------------------------------------------------------------------ charts over p
/* spec: kind ("task", "kernel", "source" or none), rows (series by point), colors, names, bold (one series), boldName, format,
   tick (format of the axis), stacked, zero, log, least, include, bottom, extra(layer, scales), note */
function picture(figure, spec) {
  const host = figure.querySelector(".plot");
  const svg = draw(host, "svg", { role: "img", tabindex: 0 });
  const many = spec.rows.length > FEW;
  let x, scale, lines = [], cursor, dots, width = 0, stack;
  host.before(make("p", { className: "note zoom-note" }));
  const zoom = make("button", { type: "button", className: "quiet zoom", textContent: "zoom", title: "Show only the part of the axis that has lines" });
  zoom.setAttribute("aria-pressed", "false");
  zoom.addEventListener("click", () => {
    spec.zoomed = !spec.zoomed;
    zoom.setAttribute("aria-pressed", spec.zoomed);
    redraw();
  });

  function redraw() {
    width = drawingWidth(host);
    const height = spec.height || clamp(Math.round(0.46 * width), 200, 285), top = 10, base = height - 24;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", spec.label());
    svg.classList.toggle("many", many);
    svg.classList.toggle("has-bold", !!spec.bold);
    svg.classList.toggle("fine", !!spec.fine);
    stack = spec.stacked && stacked(spec.rows);
    const values = (spec.stacked ? [0, 1] : spec.rows.flat()).concat(spec.bold || []);
    scale = valueScale(values, spec, top, base, Math.max(3, Math.round((base - top) / 46)));
    const labels = scale.ticks.map(spec.tick);
    const left = Math.max(34, 10 + Math.max(0, ...labels.map(textWidth)));
    x = at => left + at * (width - left - 14);

    const back = draw(svg, "g");
    scale.ticks.forEach((v, k) => {
      const y = Math.round(scale.y(v)) + 0.5;
      draw(back, "path", { class: "grid-line", d: `M${left} ${y}H${width - 8}` });
      draw(back, "text", { x: left - 6, y: y + 3.5, "text-anchor": "end" }, labels[k]);
    });
    const cut = spec.whole && spec.zoomed;
    if (cut) breakMark(back, left, base);
    figure.querySelector(".zoom-note").textContent = cut ? `Zoomed in: this axis goes from ${spec.tick(scale.ticks[0])} to ${spec.tick(scale.ticks.at(-1))}, the whole one ${wholeRange(spec, values)}.` : "";
    zoom.hidden = !spec.whole;
    if (spec.zero != null) draw(back, "path", { class: "zero", d: `M${left} ${Math.round(scale.y(spec.zero)) + 0.5}H${width - 8}` });

    const layer = draw(svg, "g");
    lines = spec.rows.map((row, k) => colored(draw(layer, "path", spec.stacked
      ? { class: "area", d: areaPath(stack[k], stack[k + 1]) }
      : { class: "line", d: linePath(row), "stroke-dasharray": spec.colors[k][2] || "none" }), spec.colors[k]));
    if (spec.extra) spec.extra(layer, { x, y: scale.y, left, right: width - 8, top, base });
    if (spec.bold) {
      draw(layer, "path", { class: "bold-halo", d: linePath(spec.bold) });
      draw(layer, "path", { class: "bold", d: linePath(spec.bold) });
    }
    exponentAxis(draw(svg, "g"), x, left, width - 8, base, top);  // before the cursor, which reaches down to the axis
    cursor = draw(svg, "path", { class: "cursor" });
    cursor.dataset.top = top;
    cursor.dataset.base = base;
    dots = draw(svg, "g");
    move();
    paint();
  }
  function linePath(row) {
    let d = "", pen = false;
    row.forEach((v, i) => {
      if (v == null || (spec.log && v <= 0)) { pen = false; return; }
      d += `${pen ? "L" : "M"}${x(D.x[i]).toFixed(1)} ${scale.y(v).toFixed(1)}`;
      pen = true;
    });
    return N === 1 ? d + "h0.01" : d;
  }
  function areaPath(lower, upper) {
    const xs = N === 1 ? [0, 1] : D.x, at = i => N === 1 ? 0 : i;
    const edge = (row, order) => order.map(i => `${x(xs[i]).toFixed(1)} ${scale.y(row[at(i)]).toFixed(1)}`).join("L");
    const order = range(xs.length);
    return `M${edge(upper, order)}L${edge(lower, order.slice().reverse())}Z`;
  }
  function move() {
    const at = x(D.x[S.i]);
    cursor.setAttribute("d", `M${at.toFixed(1)} ${cursor.dataset.top}V${cursor.dataset.base}`);
    svg.setAttribute("aria-label", spec.label());
    placeDots();
  }
  function placeDots() {
    dots.replaceChildren();
    if (spec.stacked) return;
    const at = x(D.x[S.i]), chosen = spec.kind ? hot(spec.kind) : null;
    const drawn = v => v != null && (!spec.log || v > 0);
    spec.rows.forEach((row, k) => {
      if (!drawn(row[S.i]) || (chosen ? !chosen.has(k) : many)) return;
      colored(draw(dots, "circle", { class: "dot", cx: at, cy: scale.y(row[S.i]), r: 4.5 }), spec.colors[k]);
    });
    const ends = spec.boldEnds && spec.boldEnds(S.i);
    if (ends && drawn(spec.bold[S.i])) {
      const [low, high] = ends.map(v => scale.y(v).toFixed(1));
      draw(dots, "path", { class: "error-bar", d: `M${at} ${low}V${high}M${at - 4} ${low}h8M${at - 4} ${high}h8` });
    }
    const worst = spec.lowest ? lowest(S.i) : null;
    if (worst != null && drawn(spec.rows[worst][S.i])) draw(dots, "path", { class: "lowest", d: `M${at} ${scale.y(spec.rows[worst][S.i]) - 6}l-5 -8h10Z` });
    if (spec.bold && drawn(spec.bold[S.i])) draw(dots, "circle", { class: "dot bold-dot", cx: at, cy: scale.y(spec.bold[S.i]), r: 5 });
  }
  function paint() {
    const chosen = spec.kind ? hot(spec.kind) : null;
    svg.classList.toggle("some-hot", !!chosen);
    lines.forEach((line, k) => line.classList.toggle("hot", !!chosen && chosen.has(k)));
    placeDots();
  }

  // the point of the path and the series nearest to the pointer
  function place(event) {
    const box = svg.getBoundingClientRect(), factor = width / box.width;
    const px = (event.clientX - box.left) * factor, py = (event.clientY - box.top) * factor;
    let i = 0, k = null;
    D.x.forEach((at, j) => { if (Math.abs(x(at) - px) < Math.abs(x(D.x[i]) - px)) i = j; });
    if (spec.stacked) {
      const v = scale.inverse(py);
      k = spec.rows.findIndex((row, m) => v >= stack[m][i] && v < stack[m + 1][i]);
      if (k < 0) k = null;
    } else {
      let nearest = 26;
      spec.rows.forEach((row, m) => {
        const distance = row[i] == null ? Infinity : Math.abs(scale.y(row[i]) - py);
        if (distance < nearest) [nearest, k] = [distance, m];
      });
      if (spec.bold && Math.abs(scale.y(spec.bold[i]) - py) <= nearest) k = -1;
    }
    return { i, k };
  }
  function tell(i, k, clientX, clientY) {
    if (k === -1) return showTip(clientX, clientY, spec.boldName, [`${spec.format(spec.bold[i])} at ${pText(i)}`]);
    if (k == null) return hideTip();
    const extra = spec.more ? spec.more(k, i) : [];
    return showTip(clientX, clientY, spec.names[k], [`${textOf(spec, k, i)} at ${pText(i)}`, ...extra]);
  }
  svg.addEventListener("pointermove", event => {
    const { i, k } = place(event);
    if (event.buttons & 1) setP(i);
    if (spec.kind) hover(spec.kind, k === -1 ? null : k);
    tell(i, k, event.clientX, event.clientY);
  });
  svg.addEventListener("pointerdown", event => {
    if (event.button !== 0) return;
    setP(place(event).i);
    if (event.pointerType === "mouse") svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerleave", () => {
    if (spec.kind) hover(spec.kind, null);
    hideTip();
  });
  keys(svg, {
    walk(step) {
      if (!spec.kind) return;
      const order = range(spec.rows.length).filter(k => spec.rows[k][S.i] != null);
      if (!spec.stacked) order.sort((a, b) => spec.rows[b][S.i] - spec.rows[a][S.i] || a - b); else order.reverse();
      const at = order.indexOf(S.hover[spec.kind]);
      hover(spec.kind, order[at < 0 ? (step > 0 ? 0 : order.length - 1) : clamp(at + step, 0, order.length - 1)]);
      this.tell();
    },
    tell() {
      const k = spec.kind ? S.hover[spec.kind] : null;
      if (k == null) return;
      const box = svg.getBoundingClientRect(), factor = box.width / width;
      const v = spec.stacked ? (stack[k][S.i] + stack[k + 1][S.i]) / 2 : spec.rows[k][S.i];
      tell(S.i, k, box.left + x(D.x[S.i]) * factor, box.top + scale.y(v) * factor);
    },
    mark() { if (spec.kind && S.hover[spec.kind] != null) mark(spec.kind, S.hover[spec.kind]); },
    leave() { if (spec.kind) hover(spec.kind, null); hideTip(); },
  });
  tools(figure, () => spec.table ? spec.table() : asCsv(
    ["p", ...spec.names, ...spec.bold ? [spec.boldName] : []],
    range(N).map(i => [addressOf(i), ...spec.rows.map(row => row[i]), ...spec.bold ? [spec.bold[i]] : []]),
  ), svg);
  figure.querySelector(".tools").before(zoom);
  const view = { redraw, move, paint, width: () => host.clientWidth };
  views.push(view);
  return view;
}
const breakMark = (layer, left, base) => draw(layer, "path", { class: "break of-values", d: `M${left - 5} ${base - 9}l9 -4m-9 -2l9 -4` });
function stacked(rows) {
  const levels = [Array(N).fill(0)];
  rows.forEach(row => levels.push(levels.at(-1).map((v, i) => v + row[i])));
  return levels;
}
function exponentAxis(layer, x, left, right, base, top) {
  draw(layer, "path", { class: "axis", d: `M${left} ${base + 0.5}H${right}` });
  D.broken.forEach(at => draw(layer, "path", { class: "break", d: `M${x(at) - 4} ${base + 5}l4 -9m2 9l4 -9` }));
  thin(D.ticks.map(([at, label, rank]) => [x(at), label, rank])).forEach(([at, label]) => {
    draw(layer, "path", { class: "axis", d: `M${Math.round(at) + 0.5} ${base}v4` });
    draw(layer, "text", { x: at, y: base + 17, "text-anchor": "middle" }, label);
  });
  draw(layer, "text", { class: "p", x: left - 24, y: base + 17, "text-anchor": "end" }, "p");
  if (N > 1) draw(layer, "path", { class: "one", d: `M${x(D.x[ONE])} ${top}V${base}` });
  if (D.cv) draw(layer, "path", { class: "pick", d: `M${x(D.x[D.cv.index])} ${base}l-5 7h10Z` });
}
function thin(ticks) {  // keep the labels that fit, those of low rank first
  const kept = [];
  [...ticks].sort((a, b) => a[2] - b[2] || a[0] - b[0]).forEach(tick => {
    if (kept.every(other => Math.abs(other[0] - tick[0]) > (textWidth(other[1]) + textWidth(tick[1])) / 2 + 8)) kept.push(tick);
  });
  return kept;
}
function keys(node, actions) {
  node.addEventListener("keydown", event => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -N, End: N };
    if (event.key in steps) { setP(S.i + steps[event.key]); actions.tell(); }
    else if (event.key === "ArrowUp") actions.walk(-1);
    else if (event.key === "ArrowDown") actions.walk(1);
    else if (event.key === "Enter" || event.key === " ") actions.mark();
    else if (event.key === "Escape") actions.leave();
    else return;
    event.preventDefault();
  });
  node.addEventListener("blur", () => actions.leave());
}

// ------------------------------------------------------------------------------------------------ downloads
function asCsv(head, rows) {  // a leading ' stops a spreadsheet from running a name as a formula
  const cell = v => {
    if (v == null) return "";
    const text = typeof v === "string" && /^[=+\-@\t\r]/.test(v) && Number.isNaN(+v) ? "'" + v : String(v);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map(row => row.map(cell).join(",") + "\r\n").join("");
}
function save(name, text, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function tools(card, csv, svg) {  // adds buttons that save what a card shows
  const title = card.querySelector("h2"), host = make("div", { className: "tools" });
  const called = () => initial(title.textContent.trim().replace(/\s+/g, " "));
  const file = kind => called().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") + "." + kind;
  const add = (kind, type, text) => {
    const button = make("button", { type: "button", className: "quiet", textContent: kind.toUpperCase(), title: `Save as ${kind.toUpperCase()}` });
    button.setAttribute("aria-label", `Save “${called()}” as ${kind.toUpperCase()}`);
    button.addEventListener("click", () => save(file(kind), text(), type));
    host.append(button);
  };
  if (csv) add("csv", "text/csv;charset=utf-8", csv);
  if (svg) add("svg", "image/svg+xml", () => standalone(card, svg, called()));
  const head = title.closest("figcaption, .table-head") || title;
  if (head === title) title.after(host); else head.append(host);
}
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "font-style", "paint-order"];
function standalone(card, svg, title) {  // a chart with inline styles, its title above and its legend below
  const box = svg.viewBox.baseVal, copy = svg.cloneNode(true), paper = getComputedStyle(card).backgroundColor;
  const copies = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((node, k) => {
    const looks = getComputedStyle(node);
    copies[k].removeAttribute("class");
    copies[k].setAttribute("style", LOOKS.map(name => `${name}:${looks.getPropertyValue(name)}`).join(";"));
  });
  const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg"), ink = getComputedStyle(card).color;
  const text = (x, y, content, size = 12) => draw(whole, "text", { x, y, style: `font:${size}px sans-serif;fill:${ink}` }, content);
  const ground = draw(whole, "rect", { style: `fill:${paper}` });
  text(8, 20, title, 15);
  const chart = draw(whole, "g", { transform: "translate(0 30)" });
  chart.append(...copy.childNodes);
  let x = 8, y = 30 + box.height + 18;
  card.querySelectorAll(".legend > *, .kernels button").forEach(item => {
    if (item.hidden) return;
    const line = item.querySelector(".line"), colors = [...item.querySelectorAll(".swatch, i")].map(node => getComputedStyle(node).backgroundColor);
    const said = item.querySelector("b") ? [...item.children].map(node => node.textContent).filter(Boolean).join(" ") : [...item.childNodes].map(node => node.textContent).filter(Boolean).join(" – ");
    const wide = 34 + 9 * colors.length + 7 * said.length;
    if (x > 8 && x + wide > box.width) [x, y] = [8, y + 18];
    const ring = item.querySelector(".now-key, .ring-key");
    if (ring) {
      const looks = getComputedStyle(ring);
      draw(whole, "circle", { cx: x + 8, cy: y - 4, r: parseFloat(looks.width) / 2 - 1, style: `fill:none;stroke:${looks.borderTopColor};stroke-width:${parseFloat(looks.borderTopWidth) - 0.5}` });
      x += 16;
    }
    if (line) {
      const looks = getComputedStyle(line);
      draw(whole, "path", { d: `M${x} ${y - 4}h20`, style: `fill:none;stroke:${looks.stroke};stroke-width:2;stroke-dasharray:${looks.strokeDasharray}` });
      x += 24;
    }
    colors.forEach(color => { draw(whole, "rect", { x, y: y - 10, width: 10, height: 10, style: `fill:${color}` }); x += 9; });
    text(x + 4, y, said);
    x += wide - (line ? 24 : 0) - (ring ? 16 : 0) - 9 * colors.length;
  });
  const height = y + 12;
  for (const node of [whole, ground]) { node.setAttribute("width", box.width); node.setAttribute("height", height); }
  whole.setAttribute("viewBox", `0 0 ${box.width} ${height}`);
  return new XMLSerializer().serializeToString(whole);
}

// ------------------------------------------------------------------------------------------------ legends and modes
const textOf = (spec, k, i) => spec.text ? spec.text(k, i) : spec.format(spec.rows[k][i]);
function legend(figure, spec, extra = []) {
  const host = figure.querySelector(".legend");
  const known = extra.map(([style]) => make("span", { className: "key" }, swatch(null, style), ""));
  const many = spec.kind && spec.rows.length > FEW;
  if (many) known.push(rampKey(`easy ${NOUN}`, `hard ${NOUN}`));
  const entries = !spec.kind ? [] : spec.rows.map((row, k) => {
    const button = make("button", { type: "button" }, spec.dots ? swatch(spec.colors[k]) : lineKey(spec.colors[k]), make("span", { textContent: brief(k, 40), title: spec.names[k] }), make("b"));
    linked(button, spec.kind, k);
    return button;
  });
  host.append(...known, ...entries);
  function update() {
    entries.forEach((entry, k) => { entry.lastChild.textContent = textOf(spec, k, S.i); });
    extra.forEach(([, text], k) => { known[k].lastChild.textContent = text(); });
  }
  function paint() {
    if (!spec.kind) return;
    press(entries, spec.kind);
    entries.forEach((entry, k) => { entry.hidden = many && !S.marked.task.has(k); });
  }
  const view = { redraw() { update(); paint(); }, move: update, paint };
  views.push(view);
  return view;
}
function linked(button, kind, k) {
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => mark(kind, k));
  button.addEventListener("pointerenter", event => event.pointerType === "mouse" && hover(kind, k));
  button.addEventListener("pointerleave", () => hover(kind, null));
  button.addEventListener("focus", () => button.matches(":focus-visible") && hover(kind, k));
  button.addEventListener("blur", () => hover(kind, null));
}
function press(buttons, kind) {
  buttons.forEach((button, k) => {
    button.setAttribute("aria-pressed", S.marked[kind].has(k));
    button.classList.toggle("hot", S.hover[kind] === k);
  });
}
function modes(figure, spec, choices) {  // choices: [label, properties of spec, note]
  const host = figure.querySelector(".modes"), note = figure.querySelector(".note");
  const redraw = [];
  const buttons = choices.map(([label], k) => {
    const button = make("button", { type: "button", textContent: label });
    button.addEventListener("click", () => choose(k));
    host.append(button);
    return button;
  });
  function choose(k) {
    Object.assign(spec, choices[k][1]);
    note.textContent = choices[k][2];
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", j === k));
    redraw.forEach(f => f());
  }
  choose(0);
  if (choices.length < 2) host.remove();
  return f => redraw.push(f);
}

// ------------------------------------------------------------------------------------------------ the figures
const span = rows => { const known = rows.flat().filter(v => v != null); return Math.max(...known) / Math.min(...known); };
const label = (what, value) => () => `${what}, against p. ${pText(S.i)}: ${value()}. Arrow keys move p and step through the lines.`;
const lowHigh = (rows, format) => () => {
  const known = rows().map(row => row[S.i]).filter(v => v != null);
  return `from ${format()(Math.min(...known))} to ${format()(Math.max(...known))}`;
};
const ofTasks = { kind: "task", names: D.tasks, colors: taskColors };
const percentTick = v => minus(+(100 * v).toPrecision(4) + "") + " %";
const signedTick = v => plus(v, percentTick(v));
function numberTick(v) {
  const short = +v.toPrecision(8);
  return Math.abs(short) < 1e6 ? minus(short + "") : minus(short.toExponential().replace("e+", "e"));
}
const scoreTick = SHARE_OF_ONE ? percentTick : numberTick;
const pointsTick = v => plus(v, numberTick(SHARE_OF_ONE ? 100 * v : v));
const WHOLE = IN_UNITS ? [0, 0] : [0, 1];  // the whole axis of a score, which also reaches to every value
const SMALL = IN_UNITS ? 0.02 * Math.max(...D.scores.flat().map(Math.abs)) : 0.02;  // the axis covers at least this range of scores
const initial = text => text[0].toUpperCase() + text.slice(1);

function objectivesFigure() {
  const figure = $("fig-objectives");
  if (N === 1) return figure.remove();
  const spec = { ...ofTasks, boldName: "mean M_p", more: (t, i) => [`weight ${percent(D.weights[t][i])}`] };
  spec.label = label(`Objective of each ${NOUN}`, lowHigh(() => spec.rows, () => spec.format));
  const value = ["value", {
    rows: D.objectives, bold: T > 1 ? D.mean : null, format: objective, tick: v => v < 1e-3 || v >= 1e6 ? digits(v, 3) : numberTick(v),
    zero: null, whole: span(D.objectives) > 20 ? null : [0, 0], log: span(D.objectives) > 20, least: span(D.objectives) > 20 ? 0.01 : 0.02 * sum(D.mean) / N, include: [],
  }, T > 1 ? `J of each ${NOUN}, and their mean M_p in bold. Lower is better.` : `J of the ${NOUN}. Lower is better.`];
  const changes = [`change from p = ${D.p[ONE]}`, { rows: CHANGE, bold: null, format: change, tick: signedTick, zero: 0, whole: null, log: false, least: 0.02, include: [0] },
    `How much better (below zero) or worse each ${NOUN} is than at p = ${D.p[ONE]}.`];
  const onChange = modes(figure, spec, T > 1 && N > 1 ? [changes, value] : [value]);
  const view = picture(figure, spec);
  const below = legend(figure, spec);
  onChange(() => { view.redraw(); below.redraw(); });
}
function weightsFigure() {
  const figure = $("fig-weights");
  if (T < 2 || N === 1) return figure.remove();
  const spec = { ...ofTasks, rows: D.weights, format: percent, tick: percentTick, bottom: 0, include: [0], least: 0.02,
    more: (t, i) => [`objective ${objective(D.objectives[t][i])}`] };
  spec.label = label(`Weight of each ${NOUN}`, lowHigh(() => spec.rows, () => spec.format));
  picture(figure, spec);
  legend(figure, spec);
}
const HAS_INTERVALS = !!D.scores && D.low.some(row => row.some(v => v != null));
const overallEnds = i => D.overallLow && D.overallLow[i] != null ? [D.overallLow[i], D.overallHigh[i]] : null;
function accuracyFigure() {
  const figure = $("fig-accuracy");
  if (!D.scores || N === 1) return figure.remove();
  const spec = { ...ofTasks, more: (t, i) => [D.heldOut ? `${rowsText(D.heldOut[t])} held out` : "", `weight ${percent(D.weights[t][i])}`].filter(Boolean) };
  const rowsOf = t => D.heldOut ? ` (${rowsText(D.heldOut[t])})` : "";
  spec.label = label(`Held-out ${MEASURE} of each ${NOUN}`, lowHigh(() => spec.rows, () => spec.format));
  const value = [MEASURE, { rows: D.scores, format: score, text: (t, i) => ofTask(t, i) + rowsOf(t), tick: scoreTick, zero: null, whole: WHOLE, lowest: true, least: SMALL, include: [] },
    `${MEASURE === "accuracy" ? `Share of the held-out rows of each ${NOUN} that are predicted correctly` : `${initial(MEASURE)} on the held-out rows of each ${NOUN}`}${HAS_INTERVALS ? ", with their 95 % intervals." : "."}`];
  const gains = [`difference from p = ${D.p[ONE]}`, { rows: GAIN, text: null, format: v => points(v) + (SHARE_OF_ONE && v != null ? " points" : ""), tick: pointsTick, zero: 0, whole: null, lowest: false, least: SMALL, include: [0] },
    `How much better (above zero) or worse each ${NOUN} is than at p = ${D.p[ONE]}${SHARE_OF_ONE ? ", in percentage points" : ""}${D.numbers ? "." : "; each step is at least one held-out row."}`];
  const onChange = modes(figure, spec, N > 1 ? [gains, value] : [value]);
  const view = picture(figure, spec);
  const below = legend(figure, spec, lowest(S.i) == null ? [] : [["lowest-key", () => `lowest: ${brief(lowest(S.i), 40)}, ${ofTask(lowest(S.i), S.i)}`]]);
  onChange(() => { view.redraw(); below.redraw(); });
}
function overallFigure() {
  const figure = $("fig-overall");
  if ((!D.overall && !D.cv) || N === 1) return figure.remove();
  const spec = { rows: [], colors: [], names: [], bold: D.overall || null, boldEnds: overallEnds, boldName: `held-out ${D.overallName}`, format: score, tick: scoreTick, least: SMALL, whole: WHOLE,
    include: (D.overall ? D.overall.flatMap((v, i) => overallEnds(i) || [v]) : []).concat(D.cv ? D.cv.mean.flatMap((v, k) => [v - D.cv.error[k], v + D.cv.error[k]]) : []) };
  spec.label = label(initial(D.overallName), () => (D.overall ? score(D.overall[S.i]) : NONE));
  spec.extra = (layer, { x, y }) => {
    if (!D.cv) return;
    const at = k => `${x(D.cv.x[k]).toFixed(1)} `, order = range(D.cv.x.length);
    const edge = (sign, ks) => ks.map(k => at(k) + y(D.cv.mean[k] + sign * D.cv.error[k]).toFixed(1)).join("L");
    draw(layer, "path", { class: "band", d: `M${edge(1, order)}L${edge(-1, order.slice().reverse())}Z` });
    draw(layer, "path", { class: "cv", d: "M" + order.map(k => at(k) + y(D.cv.mean[k]).toFixed(1)).join("L") });
    order.forEach(k => draw(layer, "circle", { class: "cv-dot", cx: x(D.cv.x[k]), cy: y(D.cv.mean[k]), r: 3 }));
  };
  const ofHeldOut = `On the held-out rows${overallEnds(S.i) ? "; the bar is the 95 % interval" : ""}.`;
  figure.querySelector(".note").textContent = [D.overall ? ofHeldOut : "", D.cv
    ? "The band is the cross-validated score on the training set with its standard error over the folds; ▲ below the axis marks its choice." : ""].join(" ").trim();
  spec.table = () => {
    const found = D.cv ? D.cv.x : [], at = i => found.findIndex(x => Math.abs(x - D.x[i]) < 1e-6);
    const of = (values, k) => k < 0 || !values ? null : values[k];
    return asCsv(["p", "held out", "low", "high", ...D.cv ? ["cross-validation", "standard error of cross-validation"] : []],
      range(N).map(i => [addressOf(i), of(D.overall, i), of(D.overallLow, i), of(D.overallHigh, i), ...D.cv ? [of(D.cv.mean, at(i)), of(D.cv.error, at(i))] : []]));
  };
  picture(figure, spec);
  const keysShown = [];
  if (D.overall) keysShown.push(["bold-key", () => `held out${D.heldOutRows ? ` (${rowsText(D.heldOutRows)})` : ""}: ${ofAll(S.i)}`]);
  if (D.cv) keysShown.push(["cv-key", () => "cross-validation"]);
  legend(figure, spec, keysShown);
}
const MOST_CLASSES = 12;  // with more classes a list of the most common mistakes replaces the table
function confusionCard() {
  const card = $("confusion"), C = D.confusion;
  if (!card) return;
  const select = $("confusion-task"), groups = C.groups.slice(), same = groups.every(g => g.classes.join("\n") === groups[0].classes.join("\n"));
  const dense = (g, i) => {
    const K = g.classes.length, counts = Array(K * K).fill(0), at = g.at[i];
    g.places[at].forEach((place, k) => { counts[place] = g.counts[at][k]; });
    return counts;
  };
  const together = { name: "all tasks together", classes: groups[0].classes, parts: groups };
  const choices = groups.length > 1 && same ? [together, ...groups] : groups;
  const countsOf = (g, i) => (g.parts || [g]).map(part => dense(part, i)).reduce((a, b) => a.map((v, k) => v + b[k]));
  choices.forEach((g, k) => select.append(make("option", { value: k, textContent: g.name })));
  if (choices.length < 2) select.parentNode.remove();
  select.addEventListener("change", fill);
  function fill() {
    const g = choices[+select.value || 0], counts = countsOf(g, S.i), K = g.classes.length, n = sum(counts), total = range(K).map(k => sum(counts.slice(K * k, K * (k + 1))));
    const right = sum(range(K).map(k => counts[K * k + k]));
    card.querySelector(".note").textContent = `Correct predictions: ${right} of ${n} held-out row${n === 1 ? "" : "s"}. ${K > MOST_CLASSES ? "The most common mistakes:" : "Table rows are true classes, columns are predicted classes; the shade is the share of the true class."}`;
    card.querySelector("table").replaceWith(K > MOST_CLASSES ? listed(g, counts, total) : matrix(g, counts, total));
  }
  function matrix(g, counts, total) {
    const K = g.classes.length, upright = g.classes.some(name => name.length > 4) && K > 2;
    const head = make("tr", {}, make("td", { className: "corner" }, "true ↓", make("br"), "predicted →"), ...g.classes.map(name => make("th", { scope: "col", className: upright ? "upright" : "" }, make("span", { textContent: name }))), make("th", { scope: "col", textContent: "correct" }));
    const rows = g.classes.map((name, k) => make("tr", {}, make("th", { scope: "row", textContent: name }), ...range(K).map(m => {
      const cell = make("td", { textContent: counts[K * k + m], className: k === m ? "right" : "" });
      cell.style.setProperty("--share", total[k] ? counts[K * k + m] / total[k] : 0);
      return cell;
    }), make("td", { className: "sum", textContent: `${counts[K * k + k]} of ${total[k]}` })));
    return make("table", { className: "matrix" }, make("thead", {}, head), make("tbody", {}, ...rows));
  }
  function listed(g, counts, total) {
    const K = g.classes.length, wrong = range(K * K).filter(k => Math.floor(k / K) !== k % K && counts[k]).sort((a, b) => counts[b] - counts[a]).slice(0, 15);
    const head = make("tr", {}, ...["true class", "predicted as", "rows"].map(textContent => make("th", { scope: "col", textContent })));
    const rows = wrong.map(k => make("tr", {}, ...[g.classes[Math.floor(k / K)], g.classes[k % K], `${counts[k]} of ${total[Math.floor(k / K)]}`].map(textContent => make("td", { textContent }))));
    return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  }
  tools(card, () => asCsv(["p", ...groups.length > 1 ? ["task"] : [], "true class", "predicted class", "rows"], range(N).flatMap(i => groups.flatMap(g => dense(g, i).flatMap((count, k) => count
    ? [[addressOf(i), ...groups.length > 1 ? [g.name] : [], g.classes[Math.floor(k / g.classes.length)], g.classes[k % g.classes.length], count]] : [])))), null);
  views.push({ redraw: fill, move: fill });
}
function baselinesCard() {
  const card = $("baselines"), C = D.comparison;
  if (!C) return card.remove();
  card.hidden = false;
  const heldOut = C.rows.some(row => row.heldOut != null);
  const errors = C.rows.some(row => row.rmse != null);
  const cells = (tag, texts) => texts.map((textContent, k) => make(tag, { textContent, className: k === 3 ? "rmse" : "" }))
    .filter((_, k) => k < 2 || (k === 2 ? heldOut : errors));
  card.querySelector(".note").textContent = `${initial(D.overallName)} of models you could use instead, on the same ${C.folds} folds of the training set${D.cv && D.cv.rows ? ` (${rowsText(D.cv.rows)})` : ""}${heldOut ? ` and on the same held-out rows${D.heldOutRows ? ` (${D.heldOutRows})` : ""}` : ""}.`;
  card.querySelector("thead tr").append(...cells("th", ["", `${C.folds} folds`, "held out", "RMSE"]));
  card.querySelector("tbody").append(...C.rows.map((row, k) => {
    const line = make("tr", { className: k ? "" : "ours" }, ...cells("td", [row.name, row.text, row.heldOut || "", row.rmse || ""].map(unbroken)));
    line.style.setProperty("--w", row.bar || 0);
    return line;
  }));
  tools(card, () => asCsv(["method", `${C.folds} folds`, ...heldOut ? ["held out"] : [], ...errors ? ["RMSE"] : []],
    C.rows.map(row => [row.name, row.text, ...heldOut ? [row.heldOut] : [], ...errors ? [row.rmse] : []])), null);
  $("verdict").textContent = unbroken(C.verdict);
  $("baselines-how").textContent = C.how + " So a score here can be below the one that its parameters were chosen by." + (errors ? " RMSE is the root mean squared error over the folds." : "");
}
function sharingCard() {
  const card = $("sharing"), C = D.sharing;
  if (!C) return;
  card.querySelector(".note").textContent = `${initial(MEASURE)} of the four ways to share, each with its own best parameters, on the same ${C.folds} folds of the training set (${rowsText(C.rowsOfFolds)}).`
    .replace("four", C.rows.length < 4 ? String(C.rows.length) : "four");
  card.querySelector("tbody").append(...C.rows.map(row => {
    const bar = make("span", { className: "way" });
    bar.style.setProperty("--w", row.bar);
    bar.style.setProperty("--e", row.error);
    const name = make("td", {}, make("b", { textContent: row.name }), make("small", { textContent: row.called }));
    return make("tr", { className: row.best ? "best" : "" }, name, make("td", {}, bar), make("td", { textContent: unbroken(row.text) }));
  }));
  $("sharing-words").textContent = unbroken(C.words);
  $("sharing-start").textContent = unbroken(C.start);
}
function kernelsFigure() {
  const figure = $("fig-kernels"), list = $("kernels");
  const spec = { stacked: true, format: share, tick: percentTick, bottom: 0 };
  const steady = D.spread ? ` At the p that the search has chosen, ± is the standard deviation over its folds.` : "";
  const choice = (kind, names, rows, colors) => [`by ${kind}`, { kind, names, rows, colors }, `Share of each ${kind} in the variance of the predictions${N > 1 ? ", stacked" : ""}: what the model uses, not what it needs.${steady}`];
  const error = m => D.spread && S.i === D.start && D.spread[spec.kind][m] != null ? ` ± ${(100 * D.spread[spec.kind][m]).toFixed(1)}` : "";
  const choices = [choice("kernel", D.kernels, D.shares, AREAS)];
  if (D.sources.length) {
    const rows = D.sources.map(one => one.share);
    choices.unshift(choice("source", D.sources.map(one => one.name), rows, AREAS));
  }
  const onChange = modes(figure, spec, choices);
  const heaviest = () => range(spec.rows.length).reduce((a, b) => spec.rows[b][S.i] > spec.rows[a][S.i] ? b : a);
  spec.label = () => label(`Share of each ${spec.kind}`, () => `the largest is ${spec.names[heaviest()]}, ${share(spec.rows[heaviest()][S.i])}`)();
  const view = N > 1 ? picture(figure, spec) : { redraw() {} };
  if (N === 1) {  // no chart over a single p: the list shows bars instead
    list.classList.add("bars");
    tools(figure, () => asCsv(["", ...spec.names], [["share", ...spec.rows.map(row => row[0])]]), null);
  }
  let buttons = [];
  function fill() {
    buttons = spec.names.map((name, m) => {
      const button = make("button", { type: "button" }, swatch(spec.colors[m]), make("span", {}, ...whole(name)), make("b"));
      linked(button, spec.kind, m);
      return button;
    });
    list.replaceChildren(...buttons.map(button => make("li", {}, button)));
    list.setAttribute("aria-label", `Share of each ${spec.kind} at this p`);
    move();
    paint();
  }
  const move = () => {
    const most = Math.max(...spec.rows.map(row => row[S.i]));
    buttons.forEach((button, m) => {
      button.lastChild.textContent = share(spec.rows[m][S.i]) + error(m);
      button.style.setProperty("--w", spec.rows[m][S.i] / most);
    });
  };
  const paint = () => press(buttons, spec.kind);
  onChange(() => { view.redraw(); fill(); });
  fill();
  views.push({ move, paint });
}
function gapFigure() {
  const figure = $("fig-gap");
  if (N === 1) return figure.remove();
  const spec = { rows: [], colors: [], names: [], bold: D.gap, boldName: "certified gap", fine: true, format: gap, tick: v => minus(v.toExponential(0)), log: true, include: [D.tol], least: 0.3, height: 190 };
  spec.label = label("Certified relative gap", () => gap(D.gap[S.i]));
  spec.extra = (layer, { y, left, right }) => draw(layer, "path", { class: "tol", d: `M${left} ${y(D.tol)}H${right}` });
  picture(figure, spec);
  legend(figure, spec, [["bold-key", () => `gap at ${pText(S.i)}: ${gap(D.gap[S.i])}`], ["tol-key", () => `tolerance: ${gap(D.tol)}`]]);
}

// ------------------------------------------------------------------------------------------------ predicted numbers
const valueOf = step => D.numbers.low + D.numbers.step * step;
const entriesOf = () => range(T).map(t => range(D.numbers.task.length).filter(k => D.numbers.task[k] === t));
const drawnOf = () => D.numbers.task.length < D.numbers.all ? ` The chart shows ${D.numbers.task.length} of ${D.numbers.all}, drawn at random.` : "";
const number = v => digits(v, 4);
function paintTasks(svg, nodes) {
  const set = hot("task");
  svg.classList.toggle("some-hot", !!set);
  nodes.forEach((node, t) => node.classList.toggle("hot", !!set && set.has(t)));
}
function taskKeys(svg, order, tell) {  // ↑ and ↓ step through the tasks
  keys(svg, {
    walk(step) {
      const at = order.indexOf(S.hover.task);
      hover("task", order[at < 0 ? (step > 0 ? 0 : order.length - 1) : clamp(at + step, 0, order.length - 1)]);
      this.tell();
    },
    tell() { if (S.hover.task != null) tell(S.hover.task); },
    mark() { if (S.hover.task != null) mark("task", S.hover.task); },
    leave() { hover("task", null); hideTip(); },
  });
}
function truthFigure() {
  const figure = $("fig-truth");
  if (!figure) return;
  const host = figure.querySelector(".plot"), svg = draw(host, "svg", { role: "img", tabindex: 0 });
  const truth = D.numbers.truth.map(valueOf), entries = entriesOf();
  let x, y, width, dots = [];
  figure.querySelector(".note").textContent = `Each dot is a held-out row; dots on the line are predicted exactly.${drawnOf()}`;
  function redraw() {
    width = drawingWidth(host);
    const height = clamp(Math.round(0.66 * width), 240, 380), top = 10, base = height - 38;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const ends = [...D.numbers.predicted.flat(), ...D.numbers.truth].reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]).map(valueOf);
    y = valueScale(ends, {}, top, base, Math.max(3, Math.round((base - top) / 50)));
    const left = 26 + Math.max(...y.ticks.map(v => textWidth(numberTick(v))));
    x = valueScale(ends, {}, width - 14, left, Math.max(2, Math.round((width - left) / 80)));
    y.ticks.forEach(v => {
      const at = Math.round(y.y(v)) + 0.5;
      draw(svg, "path", { class: "grid-line", d: `M${left} ${at}H${width - 8}` });
      draw(svg, "text", { x: left - 6, y: at + 3.5, "text-anchor": "end" }, numberTick(v));
    });
    x.ticks.forEach(v => {
      const at = Math.round(x.y(v)) + 0.5;
      draw(svg, "path", { class: "grid-line", d: `M${at} ${top}V${base}` });
      draw(svg, "text", { x: at, y: base + 15, "text-anchor": "middle" }, numberTick(v));
    });
    draw(svg, "path", { class: "axis", d: `M${left + 0.5} ${top}V${base + 0.5}H${width - 8}` });
    draw(svg, "text", { x: (left + width) / 2, y: height - 5, "text-anchor": "middle" }, "observed");
    draw(svg, "text", { transform: `translate(11 ${(top + base) / 2}) rotate(-90)`, "text-anchor": "middle" }, "predicted");
    draw(svg, "path", { class: "exact", d: `M${x.y(ends[0])} ${y.y(ends[0])}L${x.y(ends[1])} ${y.y(ends[1])}` });
    dots = entries.map((_, t) => colored(draw(svg, "path", { class: "dots" }), taskColors[t]));
    move();
    paint();
  }
  function move() {
    const here = D.numbers.predicted[S.i];
    entries.forEach((ks, t) => dots[t].setAttribute("d", ks.map(k => `M${x.y(truth[k]).toFixed(1)} ${y.y(valueOf(here[k])).toFixed(1)}h0`).join("")));
    svg.setAttribute("aria-label", `Predictions of ${D.numbers.task.length} held-out samples against the observed values. ${pText(S.i)}: ${MEASURE} ${score(D.overall[S.i])}. Arrow keys move p and step through the tasks.`);
  }
  const paint = () => paintTasks(svg, dots);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), factor = width / box.width, here = D.numbers.predicted[S.i];
    const px = (event.clientX - box.left) * factor, py = (event.clientY - box.top) * factor;
    let nearest = 18, found = null;
    truth.forEach((v, k) => {
      const distance = Math.hypot(x.y(v) - px, y.y(valueOf(here[k])) - py);
      if (distance < nearest) [nearest, found] = [distance, k];
    });
    hover("task", found == null ? null : D.numbers.task[found]);
    if (found == null) return hideTip();
    showTip(event.clientX, event.clientY, D.tasks[D.numbers.task[found]], [`predicted ${number(valueOf(here[found]))}`, `observed ${number(truth[found])}`]);
  });
  svg.addEventListener("pointerleave", () => { hover("task", null); hideTip(); });
  taskKeys(svg, range(T), t => {
    const box = svg.getBoundingClientRect();
    showTip(box.left + box.width / 2, box.top + 20, D.tasks[t], [`${MEASURE} ${score(D.scores[t][S.i])}`]);
  });
  tools(figure, () => asCsv(["p", "task", "truth", "prediction"],
    [[addressOf(S.i), D.numbers.predicted[S.i]]].flatMap(([p, here]) => truth.map((v, k) => [p, D.tasks[D.numbers.task[k]], +v.toPrecision(6), +valueOf(here[k]).toPrecision(6)]))), svg);
  views.push({ redraw, move, paint });
  legend(figure, { ...ofTasks, rows: D.scores, dots: true, text: ofTask });
}
function residualsFigure() {
  const figure = $("fig-residuals");
  if (!figure) return;
  const host = figure.querySelector(".plot"), svg = draw(host, "svg", { role: "img", tabindex: 0 });
  const truth = D.numbers.truth.map(valueOf), entries = entriesOf();
  const order = range(T).filter(t => entries[t].length).sort((a, b) => T > FEW ? difficulty[b] - difficulty[a] : a - b);
  const residuals = (t, i) => entries[t].map(k => truth[k] - valueOf(D.numbers.predicted[i][k])).sort((a, b) => a - b);
  const quantile = (sorted, q) => {
    const at = q * (sorted.length - 1), k = Math.floor(at);
    return k + 1 < sorted.length ? sorted[k] + (at - k) * (sorted[k + 1] - sorted[k]) : sorted[k];
  };
  const isFew = sorted => sorted.length < 5;  // for so few rows, dots show more than quartiles
  const ends = order.flatMap(t => range(N).flatMap(i => {
    const sorted = residuals(t, i);
    return isFew(sorted) ? [sorted[0], sorted.at(-1)] : [quantile(sorted, 0.05), quantile(sorted, 0.95)];
  })).reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [0, 0]);  // over all p, so that the axis stays fixed
  let x, width, tall, top, rows = [];
  figure.querySelector(".note").textContent = `Observed minus predicted: each box shows the median and the middle half of a task's residuals, the line their 5 % to 95 % range.${T > FEW ? " The hardest task is at the top." : ""}${drawnOf()}`;
  function redraw() {
    width = drawingWidth(host);
    tall = clamp(400 / order.length, 3.5, 64);
    top = 6;
    const base = Math.round(top + tall * order.length) + 4, named = tall >= 13, thick = Math.min(0.6 * tall, 26);
    const letters = Math.max(...order.map(t => brief(t, Math.round(0.3 * width / 6.6)).length));
    const left = named ? 10 + textWidth("m".repeat(letters)) : 14;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${base + 36}`);
    x = valueScale(ends, {}, width - 14, left, Math.max(2, Math.round((width - left) / 80)));
    x.ticks.forEach(v => {
      const at = Math.round(x.y(v)) + 0.5;
      draw(svg, "path", { class: "grid-line", d: `M${at} ${top}V${base}` });
      draw(svg, "text", { x: at, y: base + 15, "text-anchor": "middle" }, numberTick(v));
    });
    draw(svg, "path", { class: "zero", d: `M${Math.round(x.y(0)) + 0.5} ${top}V${base}` });
    draw(svg, "path", { class: "axis", d: `M${left} ${base + 0.5}H${width - 8}` });
    draw(svg, "text", { x: (left + width) / 2, y: base + 32, "text-anchor": "middle" }, "observed − predicted");
    rows = [];
    order.forEach((t, k) => {
      const group = colored(draw(svg, "g", { class: "box" }), taskColors[t]), y = top + tall * (k + 0.5);
      if (named) draw(group, "text", { x: left - 6, y: y + 4, "text-anchor": "end" }, brief(t, Math.round(0.3 * width / 6.6)));
      rows[t] = { group, y, thick, whisker: draw(group, "path", { class: "whisker" }), middle: draw(group, "path", { class: "middle", "stroke-width": thick }), median: draw(group, "path", { class: "median" }) };
    });
    move();
    paint();
  }
  function move() {
    order.forEach(t => {
      const { y, thick, whisker, middle, median } = rows[t], sorted = residuals(t, S.i);
      const at = q => x.y(quantile(sorted, q)).toFixed(1);
      const few = isFew(sorted);
      whisker.classList.toggle("few", few);
      whisker.setAttribute("d", few ? sorted.map(r => `M${x.y(r).toFixed(1)} ${y}h0`).join("") : `M${at(0.05)} ${y}H${at(0.95)}`);
      middle.setAttribute("d", few ? "" : `M${at(0.25)} ${y}H${at(0.75)}`);
      median.setAttribute("d", few ? "" : `M${at(0.5)} ${y - thick / 2}v${thick}`);
    });
    svg.setAttribute("aria-label", `Residuals of each task at ${pText(S.i)}. Arrow keys move p and step through the tasks.`);
  }
  const paint = () => paintTasks(svg, rows.map(row => row.group));
  function tell(t, clientX, clientY) {
    const sorted = residuals(t, S.i), signed = v => plus(v, number(v));
    const rmse = Math.sqrt(sum(sorted.map(r => r * r)) / sorted.length);
    showTip(clientX, clientY, D.tasks[t], [`median ${signed(quantile(sorted, 0.5))}, middle half from ${signed(quantile(sorted, 0.25))} to ${signed(quantile(sorted, 0.75))}`,
      `root mean square ${number(rmse)} over ${rowsText(sorted.length)}`]);
  }
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), k = Math.floor(((event.clientY - box.top) * width / box.width - top) / tall);
    const t = order[k];
    hover("task", t ?? null);
    if (t == null) return hideTip();
    tell(t, event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => { hover("task", null); hideTip(); });
  taskKeys(svg, order, t => {
    const box = svg.getBoundingClientRect();
    tell(t, box.left + box.width / 2, box.top + rows[t].y * box.width / width);
  });
  tools(figure, () => asCsv(["p", "task", "5 %", "25 %", "median", "75 %", "95 %"], range(N).flatMap(i => order.map(t => {
    const sorted = residuals(t, i);
    return [addressOf(i), D.tasks[t], ...[0.05, 0.25, 0.5, 0.75, 0.95].map(q => +quantile(sorted, q).toPrecision(6))];
  }))), svg);
  views.push({ redraw, move, paint });
}

// ------------------------------------------------------------------------------------------------ the front of two tasks
const ZOOMED = "Both axes are zoomed in; the small picture shows the same points on axes from zero.";
function frontFigure() {
  const figure = $("fig-front");
  if (T < 2 || N === 1) return figure.remove();
  const host = figure.querySelector(".plot"), svg = draw(host, "svg", { role: "img", tabindex: 0 }), select = [$("front-x"), $("front-y")];
  let [a, b] = D.pair, width, sx, sy, now, nowLabel, named, labels, frame, taken, inset;
  const order = range(T).sort((s, t) => difficulty[t] - difficulty[s]);
  select.forEach((node, k) => {
    (T <= FEW ? range(T) : order).forEach(t => node.append(make("option", { value: t, textContent: brief(t, 40) })));
    node.addEventListener("change", () => {
      const chosen = +node.value, other = k ? a : b;
      if (chosen === other) [a, b] = [b, a]; else if (k) b = chosen; else a = chosen;
      redraw();
    });
  });
  const key = (shape, text) => make("span", { className: "key" }, make("span", { className: shape }), text);
  figure.querySelector(".legend").append(rampKey(`${pText(0)}`, `${pText(N - 1)}`, LARGER), key("now-key", "the current p"), key("ring-key", "a named p"));
  tools(figure, () => asCsv(["p", ...[a, b].map(t => `objective of ${D.tasks[t]}`)], range(N).map(i => [addressOf(i), D.objectives[a][i], D.objectives[b][i]])), svg);
  $("front-swap").addEventListener("click", () => { [a, b] = [b, a]; redraw(); });

  function redraw() {
    [select[0].value, select[1].value] = [a, b];
    width = drawingWidth(host);
    const height = clamp(Math.round(0.6 * width), 230, 350), top = 12, base = height - 40;
    const across = D.objectives[a], up = D.objectives[b];
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const y = valueScale(up, { least: 1e-3 * up[ONE] }, top, base, Math.round((base - top) / 50));
    const format = v => digits(v, 6).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    const left = 26 + Math.max(...y.ticks.map(v => textWidth(format(v))));
    // valueScale runs from base up to top; here it runs from left to right
    const x = valueScale(across, { least: 1e-3 * across[ONE] }, width - 14, left, Math.max(2, Math.round((width - left) / 90)));
    const title = (t, room) => [`← better    objective of ${brief(t)}`, `← better    ${brief(t)}`].find(text => textWidth(text) < room) || `← better  ${brief(t, 16)}`;
    [sx, sy] = [i => x.y(across[i]), i => y.y(up[i])];
    y.ticks.forEach(v => {
      const at = Math.round(y.y(v)) + 0.5;
      draw(svg, "path", { class: "grid-line", d: `M${left} ${at}H${width - 8}` });
      draw(svg, "text", { x: left - 6, y: at + 3.5, "text-anchor": "end" }, format(v));
    });
    x.ticks.forEach(v => {
      const at = Math.round(x.y(v)) + 0.5;
      draw(svg, "path", { class: "grid-line", d: `M${at} ${top}V${base}` });
      draw(svg, "text", { x: at, y: base + 15, "text-anchor": "middle" }, format(v));
    });
    draw(svg, "path", { class: "axis", d: `M${left + 0.5} ${top}V${base + 0.5}H${width - 8}` });
    draw(svg, "text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, title(a, width - left));
    draw(svg, "text", { transform: `translate(11 ${(top + base) / 2}) rotate(-90)`, "text-anchor": "middle" }, title(b, base - top));
    breakMark(svg, left, base);
    draw(svg, "path", { class: "break", d: `M${left + 9} ${base + 5}l4 -9m2 9l4 -9` });
    draw(svg, "path", { class: "front-line", d: "M" + range(N).map(i => `${sx(i).toFixed(1)} ${sy(i).toFixed(1)}`).join("L") });
    range(N).forEach(i => colored(draw(svg, "circle", { class: "front-dot", cx: sx(i), cy: sy(i), r: N > 40 ? 2.8 : 4 }), ramp(D.x[i], LARGER)));
    named = new Map([[0, pText(0)], [N - 1, pText(N - 1)], [ONE, pText(ONE)]]);
    if (D.cv) named.set(D.cv.index, pText(D.cv.index) + ", cross-validation");
    inset = wholeFront(across, up, left + 6, width - 10, top, base - 6);
    frame = { left: left + 2, right: width - 4, top: 2, base: base - 2 };
    named.forEach((_, i) => draw(svg, "circle", { class: "front-ring", cx: sx(i), cy: sy(i), r: 4 }));
    labels = [...named].map(([i, text]) => [i, draw(svg, "text", { class: "halo named" }, text)]);
    now = draw(svg, "circle", { class: "front-now", r: 8 });
    nowLabel = draw(svg, "text", { class: "halo here named" });
    $("front-words").textContent = T === 2
      ? `Every point is on the Pareto front: no other mix of the kernels is better for both ${NOUN}s. ${ZOOMED}`
      : `A projection of the front of ${T} ${NOUN}s: another mix of the kernels may be better for these two at the expense of others. ${ZOOMED}`;
    move();
  }
  function wholeFront(across, up, left, right, top, base) {  // a small picture of the zoomed part on axes from zero
    const w = 78, h = 56, corners = [[right - w, top], [left, base - h], [right - w, base - h], [left, top]];
    const within = ([cx, cy]) => range(N).filter(i => sx(i) > cx - 8 && sx(i) < cx + w + 8 && sy(i) > cy - 8 && sy(i) < cy + h + 8).length;
    const [cx, cy] = corners.reduce((best, corner) => within(corner) < within(best) ? corner : best);
    const ends = values => [Math.min(0, ...values), Math.max(0, ...values)];
    const place = (values, from, room) => { const [low, high] = ends(values); return v => from + (v - low) / (high - low) * room; };
    const px = place(across, cx + 6, w - 12), up0 = place(up, 0, h - 22), py = v => cy + h - 16 - up0(v);
    draw(svg, "rect", { class: "inset", x: cx, y: cy, width: w, height: h });
    draw(svg, "path", { class: "axis inset-axes", d: `M${px(ends(across)[0])} ${cy + 6}V${py(ends(up)[0])}H${cx + w - 4}` });
    const [x0, x1] = [px(Math.min(...across)), px(Math.max(...across))], [y1, y0] = [py(Math.min(...up)), py(Math.max(...up))];
    draw(svg, "rect", { class: "inset-part", x: x0 - 1.5, y: y0 - 1.5, width: x1 - x0 + 3, height: y1 - y0 + 3 });
    draw(svg, "text", { class: "inset-name", x: cx + w / 2, y: cy + h - 4, "text-anchor": "middle" }, "from zero");
    return { x: cx - 6, y: cy - 6, w: w + 12, h: h + 12 };
  }
  function freePlace(text, i) {  // the nearest box where a label covers no point and no other label
    const w = textWidth(text) + 2, h = 14, [px, py] = [sx(i), sy(i)];
    let best = null;
    for (const r of [13, 18, 26, 36, 50, 68]) {
      for (const turn of range(16)) {
        const angle = turn * Math.PI / 8 - Math.PI / 4;  // try the upper right first
        const beside = (v, size) => (v > 0.3 ? 0 : v < -0.3 ? -size : -size / 2) + r * v;
        const x = px + beside(Math.cos(angle), w), y = py + beside(Math.sin(angle), h);
        const out = x < frame.left || x + w > frame.right || y < frame.top || y + h > frame.base;
        const covers = (k, room) => sx(k) > x - room && sx(k) < x + w + room && sy(k) > y - room && sy(k) < y + h + room;
        const covered = range(N).filter(k => covers(k, k === i ? 8 : 4)).length + 9 * covers(S.i, 10);
        const clash = taken.some(other => x < other.x + other.w && other.x < x + w && y < other.y + h && other.y < y + h);
        const cost = r + 30 * covered + 3000 * clash + 1000 * out;
        if (!best || cost < best.cost) best = { x, y, w, cost };
      }
    }
    return best;
  }
  function move() {
    const [px, py] = [sx(S.i), sy(S.i)];
    now.setAttribute("cx", px);
    now.setAttribute("cy", py);
    nowLabel.textContent = named.has(S.i) ? "" : pText(S.i);
    taken = [inset];
    [...labels, ...named.has(S.i) ? [] : [[S.i, nowLabel]]].forEach(([i, node]) => {
      const place = freePlace(node.textContent, i);
      taken.push(place);
      node.setAttribute("x", place.x);
      node.setAttribute("y", place.y + 10);
    });
    svg.setAttribute("aria-label", `${pText(S.i)}: objective of ${D.tasks[a]} ${objective(D.objectives[a][S.i])}, of ${D.tasks[b]} ${objective(D.objectives[b][S.i])}. Arrow keys move p.`);
    svg.dataset.x = D.objectives[a][S.i];
    svg.dataset.y = D.objectives[b][S.i];
  }
  const lines = i => [`${brief(a)}: ${objective(D.objectives[a][i])}`, `${brief(b)}: ${objective(D.objectives[b][i])}`];
  const nearest = event => {
    const box = svg.getBoundingClientRect(), factor = width / box.width;
    const px = (event.clientX - box.left) * factor, py = (event.clientY - box.top) * factor;
    return range(N).reduce((best, i) => Math.hypot(sx(i) - px, sy(i) - py) < Math.hypot(sx(best) - px, sy(best) - py) ? i : best);
  };
  svg.addEventListener("pointermove", event => {
    const i = nearest(event);
    if (event.buttons & 1) setP(i);
    showTip(event.clientX, event.clientY, pText(i), lines(i));
  });
  svg.addEventListener("pointerdown", event => event.button === 0 && setP(nearest(event)));
  svg.addEventListener("pointerleave", hideTip);
  keys(svg, { walk: step => setP(S.i - step), mark() {}, leave: hideTip, tell() {
    const box = svg.getBoundingClientRect(), factor = box.width / width;
    showTip(box.left + sx(S.i) * factor, box.top + sy(S.i) * factor, pText(S.i), lines(S.i));
  } });
  views.push({ redraw, move });
}

// ------------------------------------------------------------------------------------------------ the table of tasks
function tasksTable() {
  const table = $("tasks"), body = table.tBodies[0], atOne = `p = ${D.p[ONE]}`;
  const columns = [
    { title: NOUN, value: t => D.tasks[t], up: true },
    { title: "objective J", rows: D.objectives, text: objective },
    { title: `change from ${atOne}`, rows: CHANGE, text: change, needs: N > 1 },
    { title: "weight", rows: D.weights, text: percent, bar: true, needs: T > 1 },
  ].filter(column => column.needs !== false);
  if (D.scores) {
    columns.push({ short: `held-out ${MEASURE}`, title: `held-out ${MEASURE}${HAS_INTERVALS ? " (95\u00a0% interval)" : ""}`, rows: D.scores, text: (v, t) => (t === lowest(S.i) ? "lowest: " : "") + ofTask(t, S.i), wide: HAS_INTERVALS, strong: t => t === lowest(S.i) });
    if (D.heldOut) columns.push({ title: "held-out rows", rows: D.heldOut.map(n => Array(N).fill(n)), text: String });
    if (N > 1) columns.push({ title: `${SHARE_OF_ONE ? "points" : "difference"} against ${atOne}`, rows: GAIN, text: points });
  }
  let sorted = 1, up = false, shown = "";
  const heads = columns.map((column, c) => {
    const head = make("th", { scope: "col", role: "columnheader", className: column.wide ? "wide" : "" }, make("button", { type: "button", textContent: unbroken(column.title) }));
    head.firstChild.addEventListener("click", () => { [sorted, up] = [c, sorted === c ? !up : !!column.up]; sort(); });
    table.tHead.rows[0].append(head);
    return head;
  });
  const rows = range(T).map(t => {
    const button = make("button", { type: "button", className: "name" }, T <= FEW ? lineKey(taskColors[t]) : swatch(taskColors[t]), make("span", { textContent: D.tasks[t] }));
    linked(button, "task", t);
    const row = make("tr", { role: "row" }, make("td", { role: "cell" }, button), ...columns.slice(1).map(column => make("td", { role: "cell", className: column.bar ? "bar" : column.wide ? "wide" : "" })));
    columns.forEach((column, c) => { row.cells[c].dataset.label = unbroken(column.short || column.title); });  // shown if rows become cards
    row.dataset.task = t;
    colored(row, taskColors[t]);
    row.addEventListener("pointerenter", event => event.pointerType === "mouse" && hover("task", t));
    row.addEventListener("pointerleave", () => hover("task", null));
    return row;
  });
  const buttons = rows.map(row => row.querySelector("button")), cells = rows.map(row => [...row.cells]);
  function fill() {
    const heaviest = Math.max(...D.weights.map(row => row[S.i]));
    rows.forEach((row, t) => columns.forEach((column, c) => {
      if (!column.rows) return;
      const v = column.rows[t][S.i], cell = cells[t][c], text = column.text(v, t);
      if (cell.textContent !== text) cell.textContent = text;
      if (column.strong) cell.classList.toggle("lowest-cell", column.strong(t));
      if (column.bar) cell.style.setProperty("--w", v / heaviest);
    }));
    sort();
  }
  function sort() {
    const column = columns[sorted], value = t => column.rows ? column.rows[t][S.i] : column.value(t);
    const compare = (s, t) => {
      const [v, w] = [value(s), value(t)];
      if (v == null || w == null) return (v == null) - (w == null) || s - t;
      const by = typeof v === "string" ? v.localeCompare(w, undefined, { numeric: true }) : v - w;
      return (up ? by : -by) || s - t;
    };
    const order = range(T).sort(compare).filter(t => !S.find || matches(t)), key = order.join();
    heads.forEach((head, c) => head.setAttribute("aria-sort", c !== sorted ? "none" : up ? "ascending" : "descending"));
    if (key === shown) return;
    shown = key;
    const focused = document.activeElement;
    body.replaceChildren(...order.map(t => rows[t]));
    if (body.contains(focused)) focused.focus({ preventScroll: true });
  }
  function paint() {
    press(buttons, "task");
    rows.forEach((row, t) => row.classList.toggle("hot", S.hover.task === t || S.marked.task.has(t)));
    $("clear").hidden = !Object.values(S.marked).some(set => set.size);
  }
  tools($("tasks-card"), () => asCsv(
    ["p", "task", "objective", ...T > 1 ? ["weight"] : [], ...D.scores ? [`held-out ${MEASURE}`, "low", "high", "held-out rows"] : []],
    range(N).flatMap(i => range(T).map(t => [addressOf(i), D.tasks[t], D.objectives[t][i], ...T > 1 ? [D.weights[t][i]] : [],
      ...D.scores ? [D.scores[t][i], D.low[t][i], D.high[t][i], D.heldOut ? D.heldOut[t] : null] : []])),
  ), null);
  $("clear").addEventListener("click", () => { Object.values(S.marked).forEach(set => set.clear()); repaint(); });
  const find = $("find");
  if (T <= FEW) find.parentNode.remove();
  find.addEventListener("input", () => {
    S.find = find.value.trim().toLowerCase();
    sort();
    repaint();
    say();
  });
  function say() {
    const found = S.find ? `Names with “${find.value.trim()}”: ${range(T).filter(matches).length} of ${T} ${NOUN}s. ` : "";
    $("tasks-note").textContent = found + (N > 1 ? `Select a name to mark the ${NOUN} in all charts, or a heading to sort.` : "Select a heading to sort.");
  }
  say();
  let waiting;
  const fillLater = () => { clearTimeout(waiting); waiting = setTimeout(fill, 120); };
  views.push({ redraw: fill, move: T > 100 ? fillLater : fill, paint });  // filling a long table at every step would slow the slider down
}

// ------------------------------------------------------------------------------------------------ p, words, code
const unbroken = text => text.replace(/ ± /g, " ±\u00a0").replace(/(\d) %/g, "$1\u00a0%").replace(/\bp = /g, "p\u00a0=\u00a0");
function showP() {
  const here = D.words[S.i], slider = $("p");
  if (slider) {
    slider.value = S.i;
    slider.setAttribute("aria-valuetext", `${pText(S.i)}, ${here.head}`);
    $("p-now").textContent = pText(S.i);
    $("headline").textContent = here.head;
    $("previous").disabled = S.i === 0;
    $("next").disabled = S.i === N - 1;
  }
  document.querySelectorAll(".p-here").forEach(node => { node.textContent = unbroken(pText(S.i)); });
  $("sentences").replaceChildren(...here.said.map(text => make("li", { textContent: unbroken(text) })));
  $("certificate-words").textContent = unbroken(here.certificate);
  $("code").textContent = D.code.replace("{p}", () => D.codeP[S.i]);
  const note = D.codeNote.replace("{p}", () => addressOf(S.i)).split(/(?<!`)`(?!`)/).map(text => text.replaceAll("``", "`"));
  $("code-note").replaceChildren(...note.map((text, k) => k % 2 ? make("code", { textContent: text }) : text));
  document.querySelectorAll("#jumps button").forEach(button => button.setAttribute("aria-pressed", +button.dataset.index === S.i));
}
function withoutSlider() {
  $("no-slider").textContent = D.noSlider;
  $("no-slider").hidden = false;
  [$("control"), $("jumps"), $("about-p"), $("about-moving")].forEach(node => node.remove());
  if (T > 1) return;
  $("words-title").textContent = "The model";
  $("tasks-title").textContent = "The task";
}
function control() {
  const slider = $("p"), at = i => 100 * i / (N - 1) + "%";
  slider.max = N - 1;
  slider.addEventListener("input", () => setP(+slider.value));
  slider.addEventListener("keydown", event => {  // the same steps as in the charts
    const steps = { PageDown: -10, PageUp: 10 };
    if (event.key in steps) { setP(S.i + steps[event.key]); event.preventDefault(); }
  });
  $("previous").addEventListener("click", () => setP(S.i - 1));
  $("next").addEventListener("click", () => setP(S.i + 1));
  const markAt = (i, className) => {
    const node = make("i", { className });
    node.style.left = at(i);
    $("marks").append(node);
  };
  markAt(ONE, "");
  if (D.cv) markAt(D.cv.index, "pick");
  const jumps = [[0, pText(0)], [ONE, D.p[ONE] === "1" ? "p = 1, the average" : pText(ONE)], [N - 1, D.p[N - 1] === "∞" ? "p = ∞, the largest objective" : pText(N - 1)]];
  if (D.cv) jumps.push([D.cv.index, `p = ${D.cv.p}, cross-validation's choice`, "pick"]);
  jumps.filter(([i, , pick], k) => pick || jumps.findIndex(other => other[0] === i) === k).forEach(([i, text, className = ""]) => {
    const button = make("button", { type: "button", textContent: unbroken(text), className });
    button.dataset.index = i;
    button.addEventListener("click", () => setP(i));
    $("jumps").append(button);
  });
  const place = () => {  // put each label where its exponent is on the slider
    const wide = $("scale").clientWidth || 300;
    const ticks = D.ticks.map(([x, text, rank]) => [D.x.findIndex(v => Math.abs(v - x) < 1e-6), text, rank]).filter(tick => tick[0] >= 0);
    $("scale").replaceChildren(...thin(ticks.map(([i, text, rank]) => [wide * i / (N - 1), text, rank])).map(([left, text]) => {
      const node = make("span", { textContent: text });
      node.style.left = left + "px";
      return node;
    }));
  };
  views.push({ redraw: place });
}
async function copy() {
  const button = $("copy"), code = $("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {  // copying is not allowed here: select the code instead
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
function theme() {
  const button = $("theme"), names = ["auto", "light", "dark"], key = "paretomkl-theme";
  let now = "auto";
  try { now = localStorage.getItem(key) || now; } catch { /* no storage here */ }
  const apply = () => {
    if (now === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = now;
    button.textContent = "◐ " + now;
    button.setAttribute("aria-label", "Theme: " + now);
  };
  button.addEventListener("click", () => {
    now = names[(names.indexOf(now) + 1) % names.length];
    try { localStorage.setItem(key, now); } catch { /* no storage here */ }
    apply();
  });
  apply();
  button.hidden = false;
}
function guide() {  // open the first time that someone sees such a page
  const key = "paretomkl-guide";
  try {
    $("about").open = !localStorage.getItem(key);
    localStorage.setItem(key, "seen");
  } catch { /* no storage here: it stays open */ }
}

// ------------------------------------------------------------------------------------------------ start
function asked() {  // the point in the address, or -1
  const name = (location.hash.match(/^#p=(.*)$/) || [])[1] || "";
  return range(N).findIndex(i => addressOf(i) === name || (name !== "" && +addressOf(i) === +name));
}
S.i = asked() >= 0 ? asked() : S.i;
addEventListener("hashchange", () => asked() >= 0 && setP(asked()));
theme();
guide();
$("page").hidden = false;
$("no-accuracy").hidden = !!D.scores || !$("no-accuracy").children.length;
$("cv-words").textContent = D.cv ? unbroken(D.cv.words) : "";
$("code-box").hidden = !D.code;
$("copy").addEventListener("click", copy);
if (N > 1) control(); else withoutSlider();
objectivesFigure();
weightsFigure();
accuracyFigure();
overallFigure();
truthFigure();
residualsFigure();
confusionCard();
baselinesCard();
sharingCard();
frontFigure();
kernelsFigure();
gapFigure();
tasksTable();
const halves = [...document.querySelectorAll(".grid > :not(.wide):not([hidden])")];
if (halves.length % 2) halves.at(-1).classList.add("wide");
const redraw = () => views.forEach(view => view.redraw && view.redraw());
showP();
redraw();
let drawn = $("page").clientWidth, waiting;
new ResizeObserver(() => {
  const width = $("page").clientWidth;
  if (width === drawn || onPaper) return;
  drawn = width;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(redraw);
}).observe($("page"));
for (const [name, value] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(name, () => { onPaper = value; redraw(); });
}
document.documentElement.dataset.ready = "yes";
})();
