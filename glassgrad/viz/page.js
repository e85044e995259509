"use strict";
// The page: the recording is in DATA, the current view is in the fragment of the address.

const DATA = JSON.parse(document.getElementById("data").textContent);
const TABS = [["graph", "graph"], ["kernel", "formula"], ["nest", "loops"], ["passes", "passes"],
              ["program", "program"], ["source", "source"], ["machine", "machine code"]];
const MOVED = new Set(["RESHAPE", "PERMUTE", "EXPAND", "PAD", "SHRINK", "FLIP", "WINDOW", "WINDOW_ADJOINT",
                       "DETACH", "CONTIGUOUS"]);
const SIGNS = {ADD: "+", SUB: "−", MUL: "×", FDIV: "÷", CMPLT: "<", CMPEQ: "=", CMPNE: "≠",
               NEG: "−", SQRT: "√", RECIPROCAL: "1/x", WHERE: "if", MAX: "max", MIN: "min"};
const SVG = "http://www.w3.org/2000/svg";
const at = {graph: 0, kernel: 0, tab: "graph", view: "kernels", node: -1, line: -1, pass: 0};
let built = "", room = 0;  // which lists are built, and the width of drawings
const $ = id => document.getElementById(id);

// ------------------------------------------------------------------ elements

/** An element. Strings become text nodes, so that names are never parsed as markup. */
function make(tag, attributes = {}, ...children) {
  const drawn = ["svg", "g", "path", "rect", "text", "title"].includes(tag);
  const made = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null));
  return made;
}

function show(place, ...children) {
  place.replaceChildren(...children.filter(child => child !== null));
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

function seconds(s) {
  if (!s) return "–";
  return s >= 1 ? `${s.toFixed(2)} s` : s >= 1e-3 ? `${(s * 1e3).toFixed(2)} ms` : `${(s * 1e6).toFixed(1)} µs`;
}

function bytes(n) {
  return n >= 1e9 ? `${(n / 1e9).toFixed(2)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB`
       : n >= 1e3 ? `${(n / 1e3).toFixed(1)} kB` : `${n} B`;
}

function place(line) {
  const row = DATA.lines[line];
  return row ? `${row.file.split(/[\\/]/).at(-1)}:${row.line}` : "";
}

function label(code) {
  const parts = [code.name.split("_")[0]];
  for (const [size, kind] of code.axes) parts.push("_", make("span", {class: `axis-${kind}`, title: DATA.kinds[kind]}, `${size}`));
  return parts;
}

// ------------------------------------------------------------------ location

const graph = () => DATA.graphs[at.graph];
const kernel = () => graph().kernels[at.kernel];
const code = (k = kernel()) => DATA.codes[k.code];

function go(change, silent = false) {
  if ("kernel" in change || "graph" in change) at.node = -1;
  if ("graph" in change && !("kernel" in change)) at.kernel = 0;
  Object.assign(at, change);
  const hash = `#${at.graph}.${at.kernel}.${at.tab}.${at.view}.${at.line}`;
  if (!silent && location.hash !== hash) history.replaceState(null, "", hash);
  draw();
}

function fromAddress() {
  const [g, k, tab, view, line] = location.hash.slice(1).split(".");
  if (!(g in DATA.graphs) || !(k in DATA.graphs[g].kernels)) return {};
  return {graph: +g, kernel: +k, tab: TABS.some(t => t[0] === tab) ? tab : "graph",
          view: view === "lines" ? view : "kernels", line: line in DATA.lines ? +line : -1};
}

/** The kernels that compute a node of the selected line; null if no line is selected. */
function followed() {
  if (at.line < 0) return null;
  const nodes = graph().nodes;
  return new Set(graph().kernels.flatMap((k, i) => k.nodes.some(n => nodes[n][5] === at.line) ? [i] : []));
}

// ------------------------------------------------------------------ the strip and the list

function drawHeader() {
  $("title").textContent = DATA.title;
  const kernels = graph().kernels, total = kernels.reduce((sum, k) => sum + code(k).fastest, 0);
  const distinct = new Set(kernels.map(k => k.code)).size;
  $("totals").textContent = `${graph().nodes.length} nodes · ${kernels.length} kernels, ${distinct} distinct · ` +
    `${seconds(total)} · planned and compiled in ${seconds(graph().seconds)}`;
  show($("strip"), ...kernels.map((k, i) => make("i", {
    style: `flex-grow: ${1e9 * Math.max(code(k).fastest, total / 2000) || 1}`, title: `${i + 1}  ${code(k).name}  ${seconds(code(k).fastest)}`,
    class: code(k).name.startsWith("r") ? "sum" : "", onclick: () => go({kernel: i})})));
}

function drawSwitch() {
  document.querySelectorAll("[data-view]").forEach(b => b.classList.toggle("on", b.dataset.view === at.view));
  if (!$("graphs").options.length) {
    show($("graphs"), ...DATA.graphs.map((g, i) => make("option", {value: i},
      `graph ${i + 1}: ${g.kernels.length} kernel${g.kernels.length > 1 ? "s" : ""}  ${place(g.line)}`)));
  }
  $("graphs").value = at.graph;
}

function drawKernels() {
  const kernels = graph().kernels, most = Math.max(...kernels.map(k => code(k).fastest));
  const rows = kernels.map((k, i) => make("div", {class: "row", onclick: () => go({kernel: i})},
    make("span", {class: "number"}, `${i + 1}`), make("span", {class: "name"}, ...label(code(k))),
    make("span", {class: "time"}, seconds(code(k).fastest)),
    make("span", {class: "where"}, where(k)),
    make("span", {class: "bar"}, make("i", {style: `width: ${most ? 100 * code(k).fastest / most : 0}%`}))));
  show($("list"), ...rows, arcs(kernels));
}

function where(k) {
  const line = k.lines.find(l => l >= 0);
  return line === undefined ? "" : `${place(line)}  ${DATA.lines[line].text}`;
}

/** Arcs from each kernel to those that read its results. */
function arcs(kernels) {
  const height = 44, paths = [];
  kernels.forEach((k, to) => {
    for (const from of new Set(k.slots.map(s => s.maker))) {
      if (from < 0 || from === to) continue;
      const y0 = from * height + 22, y1 = to * height + 22, out = Math.min(40, 6 + Math.sqrt(to - from) * 5);
      paths.push(make("path", {class: "arc", "data-from": from, "data-to": to, d: `M46 ${y0}C${46 - out} ${y0} ${46 - out} ${y1} 46 ${y1}`}));
    }
  });
  return make("svg", {width: 50, height: kernels.length * height}, ...paths);
}

/** Mark the current entry in lists that are not built again. */
function markPlace() {
  const lit = followed();
  [...$("strip").children].forEach((bar, i) => {
    bar.classList.toggle("on", i === at.kernel);
    bar.classList.toggle("dim", lit !== null && !lit.has(i));
  });
  $("list").querySelectorAll(".row").forEach((row, i) => {
    row.classList.toggle("on", row.dataset.line ? +row.dataset.line === at.line : i === at.kernel);
    row.classList.toggle("dim", !row.dataset.line && lit !== null && !lit.has(i));
  });
  $("list").querySelectorAll("path.arc").forEach(path => {
    path.classList.toggle("in", +path.dataset.to === at.kernel);
    path.classList.toggle("out", +path.dataset.from === at.kernel);
  });
  $("list").querySelector(".row.on")?.scrollIntoView({block: "nearest"});
}

function drawLines() {
  const nodes = graph().nodes, count = new Map(), time = new Map();
  for (const node of nodes) count.set(node[5], (count.get(node[5]) || 0) + 1);
  for (const k of graph().kernels) {
    const line = k.lines.find(l => l >= 0);
    if (line !== undefined) time.set(line, (time.get(line) || 0) + code(k).fastest);
  }
  const most = Math.max(...time.values(), 1e-9);
  const found = [...count.keys()].filter(l => l >= 0)
    .sort((a, b) => DATA.lines[a].file < DATA.lines[b].file ? -1 : DATA.lines[a].file > DATA.lines[b].file ? 1 : DATA.lines[a].line - DATA.lines[b].line);
  show($("list"), ...found.map(l => make("div", {class: "row code", "data-line": l,
    onclick: () => follow(l === at.line ? -1 : l)},
    make("span", {class: "text"}, DATA.lines[l].text || "(no source)"),
    make("span", {class: "time"}, time.has(l) ? seconds(time.get(l)) : ""),
    make("span", {class: "where"}, `${place(l)}  ${count.get(l)} nodes`),
    make("span", {class: "bar"}, make("i", {style: `width: ${100 * (time.get(l) || 0) / most}%`})))));
}

/** Highlight the kernels of a line, and show the first of them. */
function follow(line) {
  at.line = line;
  const lit = followed();
  go({line, ...(lit && lit.size && !lit.has(at.kernel) ? {kernel: [...lit][0]} : {})});
}

// ------------------------------------------------------------------ one kernel

function drawHead() {
  const k = kernel(), c = code(k), readers = [];
  graph().kernels.forEach((other, i) => other.slots.some(s => s.maker === at.kernel) && readers.push(i));
  const makers = [...new Set(k.slots.map(s => s.maker).filter(m => m >= 0 && m !== at.kernel))];
  const rates = c.fastest ? [`${(c.operations / c.fastest / 1e9).toFixed(1)} GFLOP/s`, `${(c.bytes / c.fastest / 1e9).toFixed(1)} GB/s`] : [];
  const link = (to, text) => make("span", {class: "link", onclick: () => go({kernel: to})}, text);
  show($("head"), make("h2", {}, `${at.kernel + 1}  `, ...label(c)),
    ...k.lines.filter((l, i) => l >= 0 && k.lines.indexOf(l) === i).slice(0, 3).map(l =>
      make("p", {class: "user"}, `${place(l)}   `, make("b", {}, DATA.lines[l].text))),
    make("div", {class: "chips"}, make("span", {title: "the fastest run"}, seconds(c.fastest)),
      ...rates.map(rate => make("span", {}, rate)), make("span", {}, `${c.runs} run${c.runs === 1 ? "" : "s"}`),
      ...makers.map(m => link(m, `← kernel ${m + 1}`)), ...readers.slice(0, 12).map(r => link(r, `→ kernel ${r + 1}`))));
  show($("tabs"), ...TABS.filter(([tab]) => tab === "graph" || tab === "passes" || c.texts[tab]).map(([tab, name]) =>
    make("button", {class: tab === at.tab ? "on" : "", role: "tab", onclick: () => go({tab})},
      tab === "source" ? `${name} (${c.language})` : name)));
}

function drawFoot() {
  if (at.tab !== "graph" || at.node < 0) {
    const rows = kernel().slots.map((s, i) => s.role === "cells" ? null : make("span", {},
      i ? " · " : "", make("code", {}, `data${i}`), ` ${s.dtype} (${s.shape.join(", ")}) ${bytes(s.bytes)}, ${
        s.role === "output" ? "written" : s.maker >= 0 ? `from kernel ${s.maker + 1}` : "in memory"}`));
    return show($("foot"), ...rows);
  }
  const [op, dtype, shape, arg, , line] = graph().nodes[at.node];
  show($("foot"), make("code", {}, `${op} ${arg}`), `   ${dtype} (${shape.join(", ")})   `,
    line < 0 ? "made by the compiler" : make("code", {}, `${place(line)}   ${DATA.lines[line].text}`));
}

async function drawView() {
  const view = $("view"), c = code(), wanted = JSON.stringify(at);
  if (at.tab === "graph") return show(view, drawing());
  if (at.tab === "passes") return drawPasses(view, c);
  if (!c.texts[at.tab]) return show(view, make("div", {class: "empty"}, "not available for this device"));
  const text = await unpacked(c.texts[at.tab]);
  if (wanted !== JSON.stringify(at)) return;
  const head = at.tab === "nest" ? `${c.recipe}\n\n` : "";
  show(view, shownText(head + text));
}

async function drawPasses(view, c) {
  if (!c.passes.length) return show(view, make("div", {class: "empty"}, "no pass changed this kernel"));
  const number = Math.min(at.pass, c.passes.length - 1), wanted = JSON.stringify(at);
  const text = await unpacked(c.passes[number][2]);
  if (wanted !== JSON.stringify(at)) return;
  show(view, make("div", {class: "columns"}, make("div", {}, ...c.passes.map(([name, s], i) =>
    make("div", {class: `pass ${i === number ? "on" : ""}`, onclick: () => go({pass: i})},
      make("b", {}, name), make("i", {}, seconds(s))))), shownText(text)));
}

// ------------------------------------------------------------------ texts: colours, and highlighting of words

const KINDS = [["comment", /(?:^|\s)(?:;|#|\/\/).*$/gm], ["number", /\b(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b/g],
               ["name", /[%@][\w.]+|\bdata\d+|\bscratch\d+/g], ["control", /\b(?:br|phi|RANGE|END|IF|ENDIF|for|if|else|sum|max|min|over|of|move|buffer|j[a-z]{1,2})\b/g]];
const MOST_COLOURED = 30000;

function shownText(text) {
  const pre = make("pre", {}, text), node = pre.firstChild;
  if (!("highlights" in CSS) || !node) return pre;
  CSS.highlights.clear();
  for (const [kind, pattern] of KINDS) {
    const ranges = [];
    for (const found of text.matchAll(pattern)) {
      ranges.push(part(node, found.index, found.index + found[0].length));
      if (ranges.length > MOST_COLOURED) break;
    }
    CSS.highlights.set(kind, new Highlight(...ranges));
  }
  pre.addEventListener("click", event => mark(node, event));
  return pre;
}

function part(node, start, end) {
  const range = new StaticRange({startContainer: node, startOffset: start, endContainer: node, endOffset: end});
  return range;
}

/** Highlight every occurrence of the word under the pointer: where it is defined and used. */
function mark(node, event) {
  const caret = document.caretPositionFromPoint ? document.caretPositionFromPoint(event.clientX, event.clientY)
                                                : document.caretRangeFromPoint(event.clientX, event.clientY);
  const offset = caret && (caret.offset ?? caret.startOffset), text = node.textContent;
  if (!Number.isInteger(offset)) return;
  let start = offset, end = offset;
  while (start > 0 && /[\w%.@$]/.test(text[start - 1])) start--;
  while (end < text.length && /[\w%.@$]/.test(text[end])) end++;
  const word = text.slice(start, end), ranges = [];
  for (let i = text.indexOf(word); word && i >= 0; i = text.indexOf(word, i + 1)) {
    const alone = !/[\w.]/.test(text[i - 1] || " ") && !/[\w]/.test(text[i + word.length] || " ");
    if (alone) ranges.push(part(node, i, i + word.length));
  }
  CSS.highlights.set("word", new Highlight(...ranges));
}

// ------------------------------------------------------------------ start

function draw() {
  if (built !== `${at.graph} ${at.view}`) {
    built = `${at.graph} ${at.view}`;
    drawHeader();
    drawSwitch();
    at.view === "lines" ? drawLines() : drawKernels();
  }
  markPlace();
  drawHead();
  drawView();
  drawFoot();
}

function step(list, now, by) {
  return list[Math.min(list.length - 1, Math.max(0, list.indexOf(now) + by))];
}

document.addEventListener("keydown", event => {
  if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const kernels = [...graph().kernels.keys()], tabs = TABS.map(t => t[0]);
  const moves = {ArrowDown: () => ({kernel: step(kernels, at.kernel, 1)}), j: () => ({kernel: step(kernels, at.kernel, 1)}),
                 ArrowUp: () => ({kernel: step(kernels, at.kernel, -1)}), k: () => ({kernel: step(kernels, at.kernel, -1)}),
                 ArrowRight: () => ({tab: step(tabs, at.tab, 1)}), ArrowLeft: () => ({tab: step(tabs, at.tab, -1)}),
                 Escape: () => ({line: -1, node: -1})};
  if (event.key in moves) { event.preventDefault(); go(moves[event.key]()); }
});
document.querySelectorAll("[data-view]").forEach(b => b.addEventListener("click", () => go({view: b.dataset.view})));
$("graphs").addEventListener("change", event => go({graph: +event.target.value}));
function measure() {  // not while drawing, which would force a layout
  room = $("view").clientWidth;
}

measure();
addEventListener("resize", () => { measure(); draw(); });
addEventListener("hashchange", () => go(fromAddress(), true));

document.title = `${DATA.title} · glassgrad`;
if (DATA.graphs.length) go({graph: largest(), ...fromAddress()});
else show($("view"), make("div", {class: "empty"}, "nothing was computed"));

/** The graph with most kernels, which is shown first. */
function largest() {
  const counts = DATA.graphs.map(g => g.kernels.length);
  return counts.indexOf(Math.max(...counts));
}
