// The player of a recorded backward. It draws from data with text nodes and attributes only; nothing in the data is markup.

const CHAR = 0.615, MAX_LABEL = 236;
const wide = (text, size) => text.length * size * CHAR;
const fitted = (text, width, size) => {
  const room = Math.floor(width / (size * CHAR));
  return text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1)).trimEnd()}…`;
};
const normText = (v) => (v === null || v === undefined ? "" : typeof v === "string" ? { nan: "NaN", inf: "Inf" }[v] || v : Number(v.toPrecision(3)).toString());
const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : noun === "leaf" ? "" : "s"}`;

// How many of the sorted numbers are below `limit`.
function below(sorted, limit) {
  let low = 0, high = sorted.length;
  while (low < high) { const mid = (low + high) >> 1; if (sorted[mid] < limit) low = mid + 1; else high = mid; }
  return low;
}

class Recording {
  constructor(player) {
    Object.assign(this, player);
    const lists = () => this.nodes.map(() => []);
    this.ran = lists(); this.got = lists();
    this.ways = new Map(); // "src dst" → [[step, norm]]
    this.steps.forEach((step, i) => {
      this.ran[step.n].push(i);
      for (const [to, , norm] of step.sent) if (to >= 0) {
        this.got[to].push(i);
        const key = `${step.n} ${to}`;
        if (!this.ways.has(key)) this.ways.set(key, []);
        this.ways.get(key).push([i, norm]);
      }
    });
    this.index = new Map(this.nodes.map((n, i) => [n.id, i]));
    this.group = new Map(this.groups.map((g) => [g.id, g]));
    this.inside = new Map(this.groups.map((g) => [g.id, []]));
    this.nodes.forEach((n, i) => { for (let g = n.group; g; g = this.group.get(g).parent) this.inside.get(g).push(i); });
    this.bad = new Map();
    for (const mark of this.marks) for (const i of mark.path) if (!this.bad.has(i)) this.bad.set(i, mark.what);
    this.badStart = new Map(this.marks.filter((m) => m.node >= 0).map((m) => [m.node, m]));
  }

  colour(size) {
    if (size === null || size === undefined) return "line";
    if (typeof size === "string") return "error";
    if (size <= 0 || !this.span) return "h0";
    const [low, high] = this.span;
    const t = high > low ? (Math.log10(size) - low) / (high - low) : 0.5;
    return `h${Math.min(5, Math.max(0, Math.floor(t * 6)))}`;
  }

  // A node after `position` steps.
  at(i, position) {
    const runs = below(this.ran[i], position);
    if (!runs) {
      const came = below(this.got[i], position) > 0 || (position > 0 && this.roots.includes(i));
      return { status: came ? "receiving" : "waiting", size: null, runs, step: null, freed: false };
    }
    const last = this.ran[i][runs - 1], step = this.steps[last];
    const freed = this.ran[i].slice(0, runs).some((k) => this.steps[k].freed.length);
    return { status: last === position - 1 ? "running" : "done", size: step.size, runs, step, freed };
  }

  // A folded group after `position` steps.
  sum(id, position) {
    let ran = 0, size = null, running = false;
    for (const i of this.inside.get(id)) {
      const now = this.at(i, position);
      if (now.runs) ran++;
      if (now.size !== null) size = worst(size, now.size);
      running ||= now.status === "running";
    }
    const all = this.inside.get(id).length;
    return { ran, all, size, status: running ? "running" : ran === all ? "done" : ran ? "receiving" : "waiting" };
  }
}

function button(label, glyph, className = "") {
  const node = element("button", `tlb-button ${className}`, glyph);
  node.type = "button";
  node.title = label;
  node.setAttribute("aria-label", label);
  return node;
}

class Player {
  constructor(model, el) {
    this.model = model;
    this.selected = null;
    this.timer = null;
    this.position = 0;
    const root = this.root = element("div", "tlviz tlviz-live tlb");
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys stay out while the focus is here
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "Player of a recorded backward");
    const head = element("div", "tlv-head");
    this.title = element("h3"); this.subtitle = element("p", "tlv-sub");
    head.append(this.title, this.subtitle);
    this.notes = element("div", "tlb-notes");
    const main = element("div", "tlv-main"), stage = this.stage = element("div", "tlb-stage");
    this.pane = element("aside", "tlv-details");
    this.pane.setAttribute("aria-live", "polite");
    main.append(stage, this.pane);
    root.append(head, this.notes, main);
    el.append(root);
    stage.append(this.controls(), this.time = element("div", "tlb-clock"), this.now = element("p", "tlb-now"), this.tools());
    this.now.setAttribute("aria-live", "polite");
    const panel = element("section", "tlv-panel tlv-graph");
    this.hold = element("div", "tlv-scroll");
    this.svg = svgElement("svg", { role: "group", "aria-label": "The graph of the backward", "font-family": "'DejaVu Sans Mono',Menlo,Consolas,monospace" });
    this.hold.append(this.svg);
    panel.append(this.hold);
    this.legend = element("div", "tlb-legend");
    stage.append(panel, this.legend);
    this.listen();
  }

  controls() {
    const bar = element("div", "tlb-bar");
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", "Play the backward");
    const make = (label, glyph, action, name) => {
      const node = button(label, glyph, `tlb-${name}`);
      node.addEventListener("click", action);
      bar.append(node);
      return node;
    };
    make("To the start (Home)", "|◀", () => this.seek(0), "first");
    make("One step back (left arrow)", "◀", () => this.seek(this.position - 1), "back");
    this.playButton = make("Play (space)", "▶ Play", () => this.toggle(), "play");
    make("One step on (right arrow)", "▶", () => this.seek(this.position + 1), "step");
    make("To the end (End)", "▶|", () => this.seek(Infinity), "last");
    this.count = element("span", "tlb-count");
    this.count.setAttribute("aria-hidden", "true");
    const label = element("label", "tlb-speed", "speed ");
    this.speed = element("select");
    for (const [text, ms] of [["½×", 1400], ["1×", 700], ["2×", 350], ["4×", 175], ["20×", 35]]) {
      const option = element("option", "", text);
      option.value = String(ms);
      option.selected = ms === 700;
      this.speed.append(option);
    }
    this.speed.addEventListener("change", () => { if (this.timer !== null) { this.pause(); this.play(); } });
    label.append(this.speed);
    bar.append(this.count, label);
    return bar;
  }

  tools() {
    const bar = element("div", "tlb-tools");
    this.search = element("input", "tlb-search");
    this.search.type = "search";
    this.search.placeholder = "Search name, module …";
    this.search.setAttribute("aria-label", "Search nodes by name, module or operator");
    this.found = element("span", "tlb-found");
    this.found.setAttribute("role", "status");
    const fold = button("Fold all modules", "Fold all", "tlb-fold-all"), open = button("Open all modules", "Open all", "tlb-open-all");
    fold.addEventListener("click", () => { this.open.clear(); this.rebuild(); });
    open.addEventListener("click", () => this.openAll());
    const follow = element("label", "tlb-follow");
    this.follow = element("input");
    this.follow.type = "checkbox";
    this.follow.checked = true;
    follow.append(this.follow, " follow the step");
    bar.append(this.search, this.found, fold, open, follow);
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { this.nextHit(event.shiftKey ? -1 : 1); event.preventDefault(); }
      if (event.key === "Escape") { this.search.value = ""; this.find(); }
    });
    return bar;
  }

  listen() {
    const { root, svg } = this;
    const partOf = (event) => event.target.closest?.("[data-id]");
    svg.addEventListener("pointerdown", (event) => {
      const part = partOf(event);
      if (!part || event.button !== 0) return;
      this.folded = event.target.closest("[data-fold]") !== null;
      if (this.folded) this.toggleFold(part.dataset.id);
      else this.select(part.dataset.id, true);
    });
    // a redraw replaces the caption below the pointer: the focus is set by toggleFold
    svg.addEventListener("mousedown", (event) => { if (this.folded) event.preventDefault(); this.folded = false; });
    svg.addEventListener("dblclick", (event) => {
      const id = partOf(event)?.dataset.id;
      if (this.data?.group.has(id) && !event.target.closest("[data-fold]")) this.toggleFold(id);
    });
    root.addEventListener("keydown", (event) => {
      const inField = event.target.closest("input:not([type=range]), select");
      if (event.ctrlKey || event.metaKey || event.altKey || (inField && event.key !== "Escape")) { event.stopPropagation(); return; }
      const part = event.target.closest("[data-id]");
      const onButton = event.target.closest("button");
      const moves = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 };
      if (event.key === " " && !onButton) this.toggle();
      else if (event.key in moves) this.seek(this.position + moves[event.key]);
      else if (event.key === "Home") this.seek(0);
      else if (event.key === "End") this.seek(Infinity);
      else if (part && event.key === "Enter") {
        if (this.data.group.has(part.dataset.id)) this.toggleFold(part.dataset.id); else this.select(part.dataset.id, true);
      } else if (part && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        const next = neighbour(svg.querySelectorAll(".part"), part, event.key);
        if (next) { next.focus(); this.select(next.dataset.id, true); }
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  // ---- data ---------------------------------------------------------------------------------------------------------

  load() {
    const state = this.state = this.model.get("state");
    if (!state || !state.player) { this.title.textContent = "Waiting for data …"; return; }
    this.title.textContent = state.title;
    this.subtitle.textContent = state.subtitle;
    const data = this.data = new Recording(state.player);
    this.open = new Set(data.open);
    this.position = data.position;
    this.clock = timeline(data, (size) => data.colour(size), (p) => this.seek(p));
    this.slider = element("input", "tlb-slider");
    Object.assign(this.slider, { type: "range", min: "0", max: String(data.steps.length), step: "1" });
    this.slider.setAttribute("aria-label", "Position in the backward");
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.time.replaceChildren(this.clock.box, this.slider, this.clock.legend);
    this.notes.replaceChildren();
    for (const mark of data.marks) this.note(mark.text, mark.node, "error");
    if (data.stopped) this.note(data.stopped.text, data.stopped.node, "error");
    this.drawLegend();
    this.rebuild();
    const kept = this.selected !== null && (state.details[this.selected] || data.group.has(this.selected));
    const middle = this.position > 0 && this.position < data.steps.length ? data.nodes[data.steps[this.position - 1].n].id : state.start;
    this.select((kept ? this.selected : middle) || null, false);
    if (middle !== state.start) this.into(this.selected);
    this.root.dataset.draws = String(Number(this.root.dataset.draws || 0) + 1);
  }

  note(text, node) {
    const line = element("p", "tlb-note");
    line.append(element("span", "", text));
    if (node >= 0) {
      const show = element("button", "tlb-button tlb-show", "Show");
      show.type = "button";
      show.setAttribute("aria-label", `Show the node: ${this.data.nodes[node].name}`);
      show.addEventListener("click", () => this.reveal(node));
      line.append(show);
    }
    this.notes.append(line);
  }

  drawLegend() {
    const { data } = this, keys = [];
    const key = (className, text) => { const k = element("span", "tlb-key"); k.append(element("i", className), text); return k; };
    keys.push(key("tlb-k-op", "operation"), key("tlb-k-leaf", "leaf"), key("tlb-k-group", "module"), key("tlb-k-run", "this step"), key("tlb-k-got", "has received"));
    if (data.bad.size) keys.push(key("tlb-k-bad", "way of the NaN or Inf"));
    const scale = element("span", "tlb-key tlb-scale");
    if (data.span) {
      const ramp = element("span", "tlb-ramp");
      for (let i = 0; i < 6; i++) { const cell = element("i"); cell.style.background = `var(--tl-h${i})`; ramp.append(cell); }
      scale.append(`gradient norm ‖g‖ ${normText(10 ** data.span[0])} `, ramp, ` ${normText(10 ** data.span[1])}`);
      const bad = element("i"); bad.style.background = "var(--tl-ink)";
      const none = element("i"); none.style.background = "var(--tl-line)";
      keys.push(scale);
      const rest = element("span", "tlb-key"); rest.append(none, "none yet"); keys.push(rest);
      if (data.steps.some((s) => typeof s.size === "string")) { const k = element("span", "tlb-key"); k.append(bad, "NaN or Inf"); keys.push(k); }
    }
    this.legend.replaceChildren(...keys);
  }

  // ---- folding ------------------------------------------------------------------------------------------------------

  // The box that stands for a node: itself, or the outermost folded group around it.
  standIn(i) {
    let box = this.data.nodes[i].id;
    for (let g = this.data.nodes[i].group; g; g = this.data.group.get(g).parent) if (!this.open.has(g)) box = g;
    return box;
  }

  toggleFold(id) {
    if (this.open.has(id)) {
      this.open.delete(id);
    } else {
      this.open.add(id);
    }
    this.rebuild();
    this.select(id, false);
    this.part(id)?.focus({ preventScroll: true });
  }

  openAll() {
    const size = new Map([["", 0], ...this.data.groups.map((g) => [g.id, 0])]);
    for (const n of this.data.nodes) size.set(n.group, size.get(n.group) + 1);
    for (const g of this.data.groups) size.set(g.parent, size.get(g.parent) + 1);
    let boxes = this.svg.querySelectorAll(".tlb-box").length;
    const depth = (g) => { let d = 0; for (let k = g.parent; k; k = this.data.group.get(k).parent) d++; return d; };
    for (const g of [...this.data.groups].sort((a, b) => depth(a) - depth(b))) {
      if (this.open.has(g.id) || (g.parent && !this.open.has(g.parent))) continue;
      if (boxes + size.get(g.id) > 600) continue;
      boxes += size.get(g.id);
      this.open.add(g.id);
    }
    this.rebuild();
  }

  // Open what hides a node, choose it and bring it into view.
  reveal(i) {
    for (let g = this.data.nodes[i].group; g; g = this.data.group.get(g).parent) this.open.add(g);
    this.rebuild();
    this.select(this.data.nodes[i].id, true);
    this.into(this.data.nodes[i].id);
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------

  rebuild() {
    const { data, svg } = this;
    const boxes = new Map(), frames = new Map();
    const stand = this.stand = data.nodes.map((_, i) => this.standIn(i));
    this.members = new Map();
    stand.forEach((id, i) => {
      if (!this.members.has(id)) this.members.set(id, []);
      this.members.get(id).push(i);
    });
    for (const [id, list] of this.members) {
      const isGroup = data.group.has(id), first = data.nodes[list[0]];
      const lines = isGroup ? [data.group.get(id).label, `${list.length} nodes, folded`, "00 of 00 ran · ‖g‖ 0.00e-00"] : [first.name, first.shape, first.leaf ? "‖g‖ 0.00e-00 · added" : `‖g‖ 0.00e-00${first.bytes ? ` · freed ${bytesText(first.bytes)}` : ""}`];
      const w = Math.min(MAX_LABEL, Math.max(wide(lines[0], 12) + (isGroup ? 18 : 0), wide(lines[1], 11), wide(lines[2], 11))) + 40;
      boxes.set(id, { w, h: 62, order: Math.min(...list.map((i) => data.nodes[i].order)), group: (isGroup ? data.group.get(id).parent : first.group) || "" });
      for (let g = boxes.get(id).group; g; g = data.group.get(g).parent) {
        frames.set(g, { parent: data.group.get(g).parent || "", width: Math.min(300, wide(data.group.get(g).label, 11)) + 52 });
      }
    }
    this.edges = new Map();
    for (const [u, v] of data.edges) {
      const a = stand[u], b = stand[v];
      if (a === b) continue;
      const key = `${a}\n${b}`;
      if (!this.edges.has(key)) this.edges.set(key, { a, b, pairs: [] });
      this.edges.get(key).pairs.push([u, v]);
    }
    const placed = nested(boxes, frames, [...this.edges.values()].map(({ a, b }) => [a, b]));
    const M = 14, TOP = 24;
    const W = Math.ceil(placed.w + 2 * M + 6), H = Math.ceil(placed.h + TOP + 2 * M);
    const layer = svgElement("g", { transform: `translate(${M} ${TOP})` });
    for (const [id, f] of placed.frames) layer.append(this.frame(id, f));
    for (const r of placed.routes) {
      const way = this.edges.get(`${r.u}\n${r.v}`), [x, y] = r.points[r.points.length - 1] || [0, 0];
      way.node = svgElement("g", { class: "edge", "data-src": r.u, "data-dst": r.v });
      way.node.append(svgElement("path", { d: routePath(r.points), fill: "none" }), svgElement("path", { class: "tip", d: `M${x - 4} ${y - 7}L${x} ${y}L${x + 4} ${y - 7}Z` }));
      layer.append(way.node);
    }
    for (const [id, b] of placed.boxes) layer.append(this.box(id, b));
    svg.replaceChildren(layer);
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.style.width = "100%";
    svg.style.minWidth = `${Math.round(W * 0.85)}px`;
    svg.style.maxWidth = `${W}px`;
    this.find();
    this.paint();
  }

  frame(id, f) {
    const { data } = this, label = data.group.get(id).label;
    const g = svgElement("g", { class: "part tlb-frame", "data-id": id, tabindex: "0", role: "button", "aria-expanded": "true", "aria-label": `${label}, open; press Enter to fold` });
    g.append(svgElement("rect", { class: "shape", x: f.x, y: f.y, width: f.w, height: f.h, rx: 7 }));
    const bar = svgElement("g", { "data-fold": "1" });
    bar.append(svgElement("rect", { class: "tlb-caption", x: f.x + 1, y: f.y + 1, width: f.w - 2, height: 22, rx: 6 }), svgElement("text", { x: f.x + 10, y: f.y + 16, class: "tlb-line" }, `▾ ${fitted(label, f.w - 40, 11)}`));
    if (fitted(label, f.w - 40, 11) !== label) bar.append(svgElement("title", {}, label));
    g.append(bar);
    return g;
  }

  box(id, b) {
    const { data } = this, isGroup = data.group.has(id), i = isGroup ? -1 : data.index.get(id);
    const kind = isGroup ? "group" : data.nodes[i].leaf ? "leaf" : "op";
    const g = svgElement("g", { class: `part tlb-box tlb-${kind}`, "data-id": id, tabindex: "0", role: "button" });
    const area = { x: b.x, y: b.y, width: b.w, height: b.h, rx: kind === "leaf" ? 12 : 5 };
    if (isGroup) g.append(svgElement("rect", { ...area, x: b.x + 4, y: b.y + 4, class: "tlb-stack" }));
    g.append(svgElement("rect", { ...area, class: "shape" }), svgElement("rect", { ...area, class: "tlb-heat" }));
    g.append(svgElement("rect", { x: b.x + 6, y: b.y + 8, width: 6, height: b.h - 16, rx: 2, class: "tlb-strip" }));
    const room = b.w - 28;
    const text = (y, className, content, size, width = room) => {
      const node = svgElement("text", { x: b.x + 18, y: b.y + y, class: className });
      const shown = fitted(content, width, size);
      node.textContent = shown;
      if (shown !== content) node.append(svgElement("title", {}, content));
      g.append(node);
      return node;
    };
    const name = isGroup ? data.group.get(id).label : data.nodes[i].name;
    text(20, "tlb-name", name, 12, isGroup ? room - 16 : room - 4);
    text(36, "tlb-line", isGroup ? `${data.inside.get(id).length} nodes, folded` : data.nodes[i].shape, 11);
    g.third = text(52, "tlb-line tlb-third", "", 11);
    g.room = room;
    if (isGroup) {
      g.setAttribute("aria-expanded", "false");
      const more = svgElement("g", { "data-fold": "1", class: "tlb-more" });
      more.append(svgElement("rect", { x: b.x + b.w - 27, y: b.y + 5, width: 22, height: 22, rx: 4 }), svgElement("text", { x: b.x + b.w - 16, y: b.y + 21, "text-anchor": "middle" }, "▸"));
      more.append(svgElement("title", {}, "Open this module"));
      g.append(more);
      g.bar = svgElement("rect", { x: b.x + 1, y: b.y + b.h - 4, width: 0, height: 3, rx: 1.5, class: "tlb-progress" });
      g.full = b.w - 2;
      g.append(g.bar);
    } else {
      g.append(svgElement("circle", { cx: b.x + b.w - 10, cy: b.y + 10, r: 3.5, class: "tlb-done" }));
    }
    const start = isGroup ? [...data.badStart].find(([n]) => this.stand[n] === id)?.[1] : data.badStart.get(i);
    if (start) {
      const word = `${normText(start.what)} starts ${isGroup ? "inside" : "here"}`;
      const left = b.x + b.w / 2 - 8 - 6.7 * word.length; // beside the arrow into the middle
      g.append(svgElement("text", { x: Math.max(b.x, Math.min(b.x + 6, left)), y: b.y - 6, class: "tlb-flag" }, word));
    }
    return g;
  }

  // Everything that changes from step to step.
  paint() {
    const { data, position } = this;
    const step = position ? data.steps[position - 1] : null;
    for (const g of this.svg.querySelectorAll(".tlb-box")) {
      const id = g.dataset.id, isGroup = data.group.has(id);
      const now = isGroup ? data.sum(id, position) : data.at(data.index.get(id), position);
      const colour = data.colour(now.size);
      g.dataset.status = now.status;
      g.dataset.heat = now.size === null ? "" : colour;
      g.querySelector(".tlb-strip").style.fill = `var(--tl-${solid(colour)})`;
      const veil = g.querySelector(".tlb-heat");
      veil.style.fill = `var(--tl-${colour})`;
      veil.style.fillOpacity = now.size === null ? 0 : 0.26;
      let text, spoken;
      if (isGroup) {
        text = `${now.ran} of ${now.all} ran${now.size === null ? "" : ` · ‖g‖ ${normText(now.size)}`}`;
        g.bar.setAttribute("width", (g.full * now.ran) / now.all);
        spoken = `${data.group.get(id).label}, module of ${now.all} nodes, folded, ${text}`;
      } else {
        const n = data.nodes[data.index.get(id)];
        const size = now.size === null ? "" : `‖g‖ ${normText(now.size)}`;
        const leaf = now.step?.leaf;
        const more = n.leaf ? (leaf ? (leaf.first ? "first" : "added") : "") : n.bytes ? `${now.freed ? "freed" : "saves"} ${bytesText(n.bytes)}` : "";
        text = [size, more].filter(Boolean).join(" · ");
        spoken = [n.name, n.shape, text, now.status].filter(Boolean).join(", ");
      }
      const shown = fitted(text, g.room, 11);
      if (g.third.textContent !== shown) g.third.textContent = shown;
      g.setAttribute("aria-label", spoken);
      const bad = this.members.get(id).some((i) => data.bad.has(i));
      g.classList.toggle("tlb-bad", bad);
    }
    for (const way of this.edges.values()) this.paintEdge(way, step);
    this.clock.show(position);
    this.slider.value = String(position);
    const words = step ? step.text : `Before the first of ${data.steps.length} steps.`;
    this.slider.setAttribute("aria-valuetext", words);
    this.now.textContent = words;
    this.count.textContent = `${position} / ${data.steps.length}`;
    this.root.dataset.position = String(position);
    if (this.pane.dataset.shown === (this.selected ?? "")) this.fill();
  }

  paintEdge(way, step) {
    const { data, position } = this;
    let size = null, now = false, bad = 0;
    for (const [u, v] of way.pairs) {
      const sent = data.ways.get(`${u} ${v}`) || [];
      const k = below(sent.map(([s]) => s), position);
      if (k) {
        size = worst(size, sent[k - 1][1]);
        now ||= step !== null && sent[k - 1][0] === position - 1;
      }
      for (const mark of data.marks) {
        const a = mark.path.indexOf(u), b = mark.path.indexOf(v);
        if (a >= 0 && b >= 0 && Math.abs(a - b) === 1) bad = 1;
      }
    }
    way.node.dataset.state = now ? "now" : size === null ? "idle" : "sent";
    way.node.classList.toggle("tlb-bad", Boolean(bad));
    way.node.style.setProperty("--heat", `var(--tl-${size === null ? "edge" : data.colour(size)})`);
  }

  // ---- choosing -----------------------------------------------------------------------------------------------------

  select(id, tell) {
    this.selected = id;
    for (const node of this.svg.querySelectorAll(".tlv-sel,.tlv-near")) node.classList.remove("tlv-sel", "tlv-near");
    const box = id === null ? null : this.boxOf(id);
    this.part(box)?.classList.add("tlv-sel");
    for (const { a, b, node } of this.edges.values()) node.classList.toggle("tlv-near", a === box || b === box);
    this.fill();
    if (tell) this.model.send({ type: "select", id });
  }

  // The id of the box that shows a node or a group now.
  boxOf(id) {
    const i = this.data.index.get(id);
    return i === undefined ? id : this.stand[i];
  }

  part(id) { return id === null ? null : this.svg.querySelector(`[data-id="${CSS.escape(id)}"]`); }

  fill() {
    const { data, position, selected } = this;
    const i = selected === null ? undefined : data.index.get(selected);
    if (i !== undefined) {
      const note = this.state.details[selected], now = data.at(i, position);
      const name = (k) => (k >= 0 ? data.nodes[k].name : "?");
      const lines = (flows, to) => flows.map(([k, shape, norm, summed]) => `${to ? `${name(k)} ` : ""}${shape} ‖g‖ ${normText(norm)}${summed ? `, ${summed}` : ""}`).join("\n");
      const rows = [["status", now.status + (now.runs > 1 ? `, ran ${now.runs} times` : "")]];
      if (now.step) {
        if (now.step.got.length) rows.push(["received", lines(now.step.got, false)]);
        if (now.step.sent.length) rows.push(["sent to", lines(now.step.sent, true)]);
        if (now.step.leaf) rows.push([".grad", `${now.step.leaf.first ? "first gradient" : "added"}, now ‖g‖ ${normText(now.step.leaf.norm)}`]);
        if (now.step.freed.length) rows.push(["let go", now.step.freed.map(([n, size, back]) => `${n} ${size}${back ? "" : " (held elsewhere too)"}`).join("\n")]);
      }
      fillDetails(this.pane, { ...note, rows: [...rows, ...note.rows] }, selected);
    } else if (selected !== null && data.group.has(selected)) {
      const now = data.sum(selected, position), group = data.group.get(selected);
      fillDetails(this.pane, {
        title: group.label, subtitle: "module", warning: "", code: "", tables: [],
        rows: [["nodes", String(now.all)], ["ran", `${now.ran} of ${now.all}`], ...(now.size === null ? [] : [["largest ‖g‖", normText(now.size)]]), ["fold", this.open.has(selected) ? "click its caption to fold it" : "click ▸ or press Enter to open it"]],
      }, selected);
    } else {
      fillDetails(this.pane, null, "");
    }
  }

  // ---- searching ----------------------------------------------------------------------------------------------------

  find() {
    const words = this.search.value.trim().toLowerCase();
    const { data } = this;
    if (!data) return;
    const old = this.words;
    this.words = words;
    this.hits = words ? data.nodes.map((n, i) => i).filter((i) => data.nodes[i].find.includes(words)) : [];
    this.hits.sort((a, b) => data.nodes[a].order - data.nodes[b].order);
    if (old !== words) this.hit = -1;
    const boxes = new Set(this.hits.map((i) => this.stand[i]));
    for (const g of this.svg.querySelectorAll(".tlb-box")) {
      g.classList.toggle("tlb-hit", boxes.has(g.dataset.id));
      g.classList.toggle("tlb-dim", Boolean(words) && !boxes.has(g.dataset.id));
    }
    this.found.textContent = words ? (this.hit >= 0 ? `${this.hit + 1} of ${this.hits.length}` : `${this.hits.length} found`) : "";
  }

  nextHit(by) {
    if (!this.hits.length) return;
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    this.reveal(this.hits[this.hit]);
  }

  // ---- playing ------------------------------------------------------------------------------------------------------

  seek(position) {
    const n = this.data.steps.length, to = Math.max(0, Math.min(n, position));
    if (to === this.position) { if (to === n) this.pause(); return; }
    this.position = to;
    this.paint();
    if (this.follow.checked && to) {
      const id = this.data.nodes[this.data.steps[to - 1].n].id;
      this.select(id, false);
      this.into(id);
    }
    if (to === n) this.pause();
  }

  toggle() { if (this.timer === null) this.play(); else this.pause(); }

  play() {
    if (!this.data.steps.length) return;
    if (this.position >= this.data.steps.length) this.seek(0);
    this.now.setAttribute("aria-live", "off");
    this.timer = setInterval(() => this.seek(this.position + 1), Number(this.speed.value));
    this.showPlaying(true);
  }

  pause() {
    if (this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
    this.now.setAttribute("aria-live", "polite");
    this.showPlaying(false);
  }

  showPlaying(on) {
    this.playButton.textContent = on ? "❚❚ Pause" : "▶ Play";
    this.playButton.setAttribute("aria-label", on ? "Pause (space)" : "Play (space)");
    this.playButton.title = on ? "Pause (space)" : "Play (space)";
    this.root.dataset.playing = String(on);
  }

  // Scroll the graph's own frame, never the page.
  into(id) {
    const part = this.part(this.boxOf(id));
    if (!part) return;
    const box = part.querySelector(".shape").getBoundingClientRect(), frame = this.hold.getBoundingClientRect();
    if (box.top < frame.top + 20 || box.bottom > frame.bottom - 20) this.hold.scrollTop += box.top - frame.top - frame.height / 2 + box.height / 2;
    if (box.left < frame.left || box.right > frame.right) this.hold.scrollLeft += box.left - frame.left - frame.width / 2 + box.width / 2;
  }
}

export default {
  render({ model, el }) {
    const player = new Player(model, el);
    const load = () => player.load();
    const message = (content) => { if (content?.type === "seek") player.seek(Number(content.position)); };
    model.on("change:state", load);
    model.on("msg:custom", message);
    load();
    return () => { player.pause(); model.off("change:state", load); model.off("msg:custom", message); };
  },
};
