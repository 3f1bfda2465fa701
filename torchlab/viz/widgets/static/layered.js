// The layered layout of torchlab/viz/layout for graphs that are folded and opened on the page: ranks, order, centres.
// `nested` draws every open group by itself, with ports on its border, and then sets it as one big box.

const VIRTUAL = 10, PAD = 14, CAPTION = 20;

// The non-decreasing sequence nearest to `wanted` in weighted least squares (pooling adjacent violators).
function isotonic(wanted, weights) {
  const blocks = [];
  wanted.forEach((value, i) => {
    let [mean, weight, length] = [value, weights[i], 1];
    while (blocks.length && blocks[blocks.length - 1][0] > mean) {
      const [m, w, l] = blocks.pop();
      mean = (mean * weight + m * w) / (weight + w); weight += w; length += l;
    }
    blocks.push([mean, weight, length]);
  });
  return blocks.flatMap(([mean, , length]) => Array(length).fill(mean));
}

const median = (values) => {
  values.sort((a, b) => a - b);
  const m = values.length >> 1;
  return values.length % 2 ? values[m] : (values[m - 1] + values[m]) / 2;
};

function crossings(layers, place, succ) {
  let total = 0;
  for (const layer of layers) {
    const ends = [];
    for (const node of layer) for (const next of succ[node].map((n) => place[n]).sort((a, b) => a - b)) {
      // how many earlier ends lie to the right: a sorted list with binary search
      let low = 0, high = ends.length;
      while (low < high) { const mid = (low + high) >> 1; if (ends[mid] <= next) low = mid + 1; else high = mid; }
      total += ends.length - low;
      ends.splice(low, 0, next);
    }
  }
  return total;
}

function ordered(layers, succ, pred) {
  const place = [];
  const number = (ls) => ls.forEach((layer) => layer.forEach((n, i) => { place[n] = i; }));
  number(layers);
  let best = layers.map((l) => [...l]), least = crossings(layers, place, succ);
  const sweeps = place.length > 3000 ? 2 : 14;
  for (let sweep = 0; sweep < sweeps && least > 0; sweep++) {
    const down = sweep % 2 === 0;
    const rows = down ? layers : [...layers].reverse();
    for (const layer of rows) {
      const key = new Map(layer.map((n) => {
        const near = down ? pred[n] : succ[n];
        return [n, near.length ? near.reduce((s, m) => s + place[m], 0) / near.length : place[n]];
      }));
      layer.sort((a, b) => key.get(a) - key.get(b) || place[a] - place[b]);
      layer.forEach((n, i) => { place[n] = i; });
    }
    const now = crossings(layers, place, succ);
    if (now < least) { least = now; best = layers.map((l) => [...l]); }
  }
  return best;
}

function centres(layers, widths, succ, pred, isVirtual, gap) {
  let x = widths.map(() => 0);
  const through = succ.map((after) => { const on = after.filter((m) => succ[m].length); return on.length ? on : after; });
  const weights = widths.map((_, i) => (isVirtual(i) ? 6 : succ[i].length ? 1 : 0.001));
  for (const layer of layers) {
    let left = 0;
    for (const n of layer) { x[n] = left + widths[n] / 2; left += widths[n] + gap; }
    for (const n of layer) x[n] -= (left - gap) / 2;
  }
  let best = x, least = Infinity;
  const sweeps = 12;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const down = sweep % 2 === 0, both = sweep >= sweeps / 3 && sweep < sweeps - 4;
    for (const layer of down ? layers : [...layers].reverse()) {
      let offset = 0;
      const offsets = layer.map((n, i) => (offset += i ? (widths[layer[i - 1]] + widths[n]) / 2 + gap : 0));
      const wanted = layer.map((n, i) => {
        let near = down ? pred[n] : through[n];
        if (both || !near.length) near = [...pred[n], ...through[n]];
        return (near.length ? median(near.map((m) => x[m])) : x[n]) - offsets[i];
      });
      isotonic(wanted, layer.map((n) => weights[n])).forEach((v, i) => { x[layer[i]] = v + offsets[i]; });
    }
    let cost = 0;
    succ.forEach((after, u) => after.forEach((v) => {
      const d = Math.abs(x[u] - x[v]);
      cost += (isVirtual(u) && isVirtual(v) ? 4 : 1) * (d > 0.5 ? d + 25 : 0);
    }));
    if (cost < least - 1e-6) { least = cost; best = [...x]; }
  }
  return best;
}

// One level: `items` are { id, w, h, order, port }, in backward's order; edges are pairs of ids.
function oneLevel(items, edges, rankGap = 30, nodeGap = 22) {
  const at = new Map(items.map((it, i) => [it.id, i]));
  const pairs = new Map();
  for (const [u, v] of edges) {
    const a = at.get(u), b = at.get(v);
    if (a !== b) pairs.set(`${u}\n${v}`, { a, b, turned: items[a].order > items[b].order });
  }
  const n = items.length, rank = Array(n).fill(0);
  const succ = items.map(() => []), pred = items.map(() => []);
  for (const p of pairs.values()) { const [u, v] = p.turned ? [p.b, p.a] : [p.a, p.b]; succ[u].push(v); pred[v].push(u); }
  const byOrder = items.map((_, i) => i).sort((i, j) => items[i].order - items[j].order);
  for (const i of byOrder) for (const j of succ[i]) rank[j] = Math.max(rank[j], rank[i] + 1);
  let deepest = Math.max(0, ...rank);
  items.forEach((it, i) => { if (it.port === "out") rank[i] = deepest; });

  const widths = items.map((it) => it.w), heights = items.map((it) => it.h);
  const links = new Set(), chains = new Map();
  for (const [key, p] of pairs) {
    const [u, v] = p.turned ? [p.b, p.a] : [p.a, p.b];
    const chain = [u];
    if (rank[v] - rank[u] < 400) {
      for (let r = rank[u] + 1; r < rank[v]; r++) { chain.push(rank.length); rank.push(r); widths.push(VIRTUAL); heights.push(0); }
      for (let k = 0; k + 1 < chain.length; k++) links.add(`${chain[k]} ${chain[k + 1]}`);
      links.add(`${chain[chain.length - 1]} ${v}`);
    }
    chain.push(v);
    chains.set(key, { chain, turned: p.turned });
  }
  const total = rank.length, down = Array.from({ length: total }, () => []), up = Array.from({ length: total }, () => []);
  for (const link of links) { const [u, v] = link.split(" ").map(Number); down[u].push(v); up[v].push(u); }
  deepest = Math.max(0, ...rank);
  let layers = Array.from({ length: deepest + 1 }, () => []);
  for (const i of [...byOrder, ...Array.from({ length: total - n }, (_, k) => n + k)]) layers[rank[i]].push(i);
  layers = ordered(layers, down, up);
  let cx = centres(layers, widths, down, up, (i) => i >= n, nodeGap);
  const left = Math.min(Infinity, ...cx.map((c, i) => c - widths[i] / 2));
  cx = cx.map((c) => c - left);
  const width = Math.max(0, ...cx.map((c, i) => c + widths[i] / 2));
  const tops = [], bottoms = [];
  let y = 0;
  for (const layer of layers) {
    tops.push(y);
    y += Math.max(0, ...layer.map((i) => heights[i]));
    bottoms.push(y);
    const widest = Math.max(0, ...layer.flatMap((i) => down[i].map((j) => Math.abs(cx[i] - cx[j]))));
    y += Math.min(rankGap + 0.07 * widest, 3 * rankGap);
  }
  const boxes = new Map(items.map((it, i) => {
    const middle = (tops[rank[i]] + bottoms[rank[i]]) / 2;
    return [it.id, { x: cx[i] - it.w / 2, y: middle - it.h / 2, w: it.w, h: it.h }];
  }));
  const routes = new Map();
  for (const [key, { chain, turned }] of chains) {
    const points = [];
    chain.forEach((i, k) => {
      const middle = (tops[rank[i]] + bottoms[rank[i]]) / 2, half = heights[i] / 2;
      if (k) points.push([cx[i], tops[rank[i]]], [cx[i], k === chain.length - 1 ? middle - half : middle]);
      if (k < chain.length - 1) points.push([cx[i], k ? middle : middle + half], [cx[i], bottoms[rank[i]]]);
    });
    routes.set(key, turned ? points.reverse() : points);
  }
  return { w: width, h: bottoms[bottoms.length - 1] || 0, boxes, routes };
}

// boxes: Map id → { w, h, order, group }; groups: Map id → { parent, width }, the open ones; edges: pairs of box ids.
function nested(boxes, groups, edges) {
  const chainOf = (id) => { // the groups around a box, innermost first, then "" for the whole
    const found = [];
    for (let g = boxes.get(id).group; g; g = groups.get(g).parent) found.push(g);
    return [...found, ""];
  };
  const around = new Map([...boxes.keys()].map((id) => [id, chainOf(id)]));
  const children = new Map([["", []], ...[...groups.keys()].map((g) => [g, []])]);
  for (const [id, box] of boxes) children.get(box.group || "").push({ id, ...box });
  const parentOf = (g) => groups.get(g).parent || "";
  const within = new Map([...children.keys()].map((g) => [g, []])); // level → [item, item]
  const levelEdges = edges.map(([u, v]) => {
    const cu = around.get(u), cv = around.get(v);
    const common = cu.find((g) => cv.includes(g));
    const outward = cu.slice(0, cu.indexOf(common)), inward = cv.slice(0, cv.indexOf(common)).reverse();
    const segments = [];
    let item = u;
    for (const g of outward) { segments.push([g, item, `out:${u}`]); item = g; }
    segments.push([common, item, inward.length ? inward[0] : v]);
    inward.forEach((g, k) => segments.push([g, `in:${u}`, k + 1 < inward.length ? inward[k + 1] : v]));
    for (const [g, a, b] of segments) within.get(g).push([a, b]);
    return { u, v, segments, outward: outward.length };
  });
  const depth = (g) => { let d = 0; for (let k = g; k; k = parentOf(k)) d++; return d; };
  const drawn = new Map();
  for (const g of [...children.keys()].sort((a, b) => depth(b) - depth(a))) {
    const items = children.get(g).map((it) => ({ ...it }));
    const ports = new Map();
    for (const [a, b] of within.get(g)) for (const p of [a, b]) {
      if (p.startsWith("in:")) ports.set(p, { id: p, w: VIRTUAL, h: 0, order: -1, port: "in" });
      if (p.startsWith("out:")) ports.set(p, { id: p, w: VIRTUAL, h: 0, order: 1e9, port: "out" });
    }
    const level = oneLevel([...items, ...ports.values()].sort((a, b) => a.order - b.order), within.get(g));
    drawn.set(g, level);
    if (g) {
      const order = Math.min(...items.map((it) => it.order));
      const w = Math.max(level.w + 2 * PAD, groups.get(g).width);
      children.get(parentOf(g)).push({ id: g, w, h: level.h + 2 * PAD + CAPTION, order });
    }
  }
  const result = { w: drawn.get("").w, h: drawn.get("").h, boxes: new Map(), frames: new Map(), routes: [] };
  const offset = new Map([["", [0, 0]]]);
  for (const g of [...children.keys()].sort((a, b) => depth(a) - depth(b))) {
    if (g) {
      const box = result.frames.get(g), level = drawn.get(g);
      offset.set(g, [box.x + (box.w - level.w) / 2, box.y + PAD + CAPTION]);
    }
    const [dx, dy] = offset.get(g);
    for (const [id, b] of drawn.get(g).boxes) {
      const moved = { ...b, x: b.x + dx, y: b.y + dy };
      if (groups.has(id)) result.frames.set(id, moved);
      else if (boxes.has(id)) result.boxes.set(id, moved);
    }
  }
  for (const { u, v, segments, outward } of levelEdges) {
    const parts = segments.map(([g, a, b]) => {
      const [dx, dy] = offset.get(g);
      return (drawn.get(g).routes.get(`${a}\n${b}`) || []).map(([x, y]) => [x + dx, y + dy]);
    });
    for (let k = 0; k + 1 < parts.length; k++) {
      const here = parts[k], next = parts[k + 1];
      if (!here.length || !next.length) continue;
      if (k < outward) for (const p of next.slice(0, 2)) p[0] = here[here.length - 1][0];
    }
    for (let k = parts.length - 2; k >= outward; k--) {
      const here = parts[k], next = parts[k + 1];
      if (here.length && next.length) for (const p of here.slice(-2)) p[0] = next[0][0];
    }
    result.routes.push({ u, v, points: parts.flat() });
  }
  return result;
}

// SVG path data: straight inside a rank, a curve with upright ends between two.
function routePath(points) {
  if (!points.length) return "";
  const f = (v) => v.toFixed(1);
  let out = `M${f(points[0][0])} ${f(points[0][1])}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1], [x1, y1] = points[i];
    const m = (y0 + y1) / 2;
    out += Math.abs(x0 - x1) < 0.5 ? `L${f(x1)} ${f(y1)}` : `C${f(x0)} ${f(m)} ${f(x1)} ${f(m)} ${f(x1)} ${f(y1)}`;
  }
  return out;
}
