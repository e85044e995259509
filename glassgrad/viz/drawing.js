// The graph of one kernel: boxes in layers, from its inputs down to what it stores.

function drawing() {
  const k = kernel(), all = graph().nodes, inside = new Set(k.nodes);
  const makers = new Map();
  graph().kernels.forEach((other, i) => other.ends && other.ends.forEach(n => makers.set(n, i)));
  const shown = k.nodes.filter(n => all[n][0] !== "CONST" && all[n][0] !== "BIND");
  if (!shown.length) return make("div", {class: "empty"}, "constants only");
  const boxes = new Map(shown.map(n => [n, box(n, all, k, makers)]));
  for (const b of boxes.values()) b.above = b.leaf ? [] : [...new Set(all[b.node][4])].filter(s => boxes.has(s) && inside.has(s));
  join(boxes);
  const [width, height] = lay(boxes);
  const same = at.node >= 0 ? all[at.node][5] : at.line;
  const edges = [], nodes = [];
  for (const b of boxes.values()) {
    for (const s of b.above) {
      const a = boxes.get(s);
      edges.push(make("path", {class: `edge ${s === at.node || b.node === at.node ? "on" : ""}`, d: way(a, b)}));
    }
    const lit = same >= 0 && all[b.node][5] === same;
    nodes.push(make("g", {class: `node ${b.kind} ${lit ? "same" : ""} ${b.node === at.node ? "on" : ""}`,
      transform: `translate(${b.x} ${b.y})`, onclick: () => b.maker >= 0 ? go({kernel: b.maker}) : go({node: b.node})},
      make("rect", {width: b.w, height: b.h, rx: 7}),
      make("text", {x: b.w / 2, y: 17, "text-anchor": "middle"}, b.text),
      make("text", {x: b.w / 2, y: 31, "text-anchor": "middle", class: "small"}, b.shape)));
  }
  return make("svg", {width, height}, ...edges, ...nodes);
}

/** An edge from one box down to another, around boxes between them in the same column. */
function way(a, b) {
  const x0 = a.x + a.w / 2, x1 = b.x + b.w / 2;
  if (b.layer - a.layer > 1 && Math.abs(x0 - x1) < 60) {
    const r0 = a.x + a.w, r1 = b.x + b.w, y0 = a.y + a.h / 2, y1 = b.y + b.h / 2, side = Math.max(r0, r1) + 44;
    return `M${r0} ${y0}C${side} ${y0} ${side} ${y1} ${r1} ${y1}`;
  }
  const y0 = a.y + a.h, y1 = b.y, bend = Math.max(18, (y1 - y0) / 2);
  return `M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`;
}

function box(n, all, k, makers) {
  const [op, dtype, shape, arg, sources] = all[n], ends = k.ends.includes(n);
  const maker = !ends && makers.has(n) ? makers.get(n) : -1;
  const leaf = op === "BUFFER" || maker >= 0;
  const numbers = sources.filter(s => all[s][0] === "CONST").map(s => all[s][3]);
  const sign = SIGNS[op] || op.toLowerCase();
  const text = maker >= 0 ? `kernel ${maker + 1}` : op === "BUFFER" ? "memory" : op === "REDUCE" ? arg
             : `${sign}${numbers.length ? ` ${numbers.join(" ")}` : ""}`;
  const small = `${dtype} (${shape.join(", ")})`;
  const kind = `${leaf ? "memory" : op === "REDUCE" || op === "SCAN" ? "sum" : MOVED.has(op) ? "moved" : ""} ${ends ? "end" : ""}`;
  const made = {node: n, leaf, maker, ends, text, shape: small, kind, h: 38, x: 0, y: 0};
  made.moves = !leaf && MOVED.has(op) ? [sign] : null;
  made.w = widthOf(made);
  return made;
}

/** A chain of movement ops becomes one box, as it moves no data. */
function join(boxes) {
  const readers = new Map();
  for (const b of boxes.values()) for (const s of b.above) readers.set(s, (readers.get(s) || 0) + 1);
  for (const b of [...boxes.values()].sort((a, b) => a.node - b.node)) {
    if (!b.moves || b.above.length !== 1) continue;
    const a = boxes.get(b.above[0]);
    if (!a.moves || a.ends || readers.get(a.node) > 1) continue;
    b.moves = [...a.moves, ...b.moves];
    b.above = a.above;
    b.text = b.moves.length > 3 ? `${b.moves[0]} … ${b.moves.at(-1)}` : b.moves.join(" ");
    b.w = widthOf(b);
    boxes.delete(a.node);
  }
}

function widthOf(b) {
  return Math.max(b.text.length * 7.4, b.shape.length * 6.1) + 18;
}

/** Layers by the longest path from memory; in each, boxes ordered by where their sources are. */
function lay(boxes) {
  const order = [...boxes.keys()].sort((a, b) => a - b), layers = [];
  for (const n of order) {
    const b = boxes.get(n);
    b.layer = b.above.length ? 1 + Math.max(...b.above.map(s => boxes.get(s).layer)) : 0;
  }
  for (const n of [...order].reverse()) {  // inputs are just above their first reader
    const b = boxes.get(n), below = order.filter(m => boxes.get(m).above.includes(n)).map(m => boxes.get(m).layer);
    if (!b.above.length && below.length) b.layer = Math.min(...below) - 1;
  }
  for (const b of boxes.values()) (layers[b.layer] ||= []).push(b);
  const rows = layers.filter(Boolean), gap = 22;
  const spread = row => { let x = 0; for (const b of row) { b.x = x; x += b.w + gap; } };
  rows.forEach(spread);
  const middle = b => b.x + b.w / 2;
  for (let sweep = 0; sweep < 6; sweep++) {
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      for (const b of row) {
        const near = sweep % 2 ? order.map(m => boxes.get(m)).filter(o => o.above.includes(b.node)) : b.above.map(s => boxes.get(s));
        b.wish = near.length ? near.reduce((sum, o) => sum + middle(o), 0) / near.length : middle(b);
      }
      row.sort((a, b) => a.wish - b.wish);
      let x = -Infinity;
      for (const b of row) { b.x = Math.max(x, b.wish - b.w / 2); x = b.x + b.w + gap; }
      const shift = row.reduce((sum, b) => sum + b.wish - middle(b), 0) / row.length;
      for (const b of row) b.x += shift;
    }
  }
  const left = Math.min(...[...boxes.values()].map(b => b.x));
  rows.forEach((row, i) => row.forEach(b => { b.x += 24 - left; b.y = 20 + i * 58; }));
  const width = Math.max(...[...boxes.values()].map(b => b.x + b.w)) + 24;
  const spare = Math.max(0, (room - width) / 2 - 12);
  for (const b of boxes.values()) b.x += spare;
  return [width + spare + 24, rows.length * 58 + 20];
}
