// Data loading over time. It draws from data with text nodes and attributes only; nothing in the data is markup.

const HINT = "Point at a lane, or press ◀ ▶, to see a batch; a click keeps it.";
const HELP = "Timeline. Left and right arrow: the batch before or after; up and down: another lane; plus, minus and 0: zoom; Enter keeps a batch, Escape lets it go.";

class LoaderPanel {
  constructor(model, el) {
    this.model = model;
    this.view = null; // [from, to] in microseconds; null: everything
    this.pinned = null; // the batch that was chosen, by its place
    this.hovered = null;
    this.drag = null;
    const root = this.root = element("div", "tlviz tlviz-live tll");
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys stay out while the focus is here
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "Data loading");
    const head = element("div", "tlv-head");
    this.title = element("h3"); this.subtitle = element("p", "tlv-sub");
    head.append(this.title, this.subtitle);
    this.verdicts = element("div", "tll-verdicts");
    this.notes = element("div", "tll-notes");
    const main = element("div", "tlv-main"), stage = this.stage = element("div", "tll-stage");
    this.pane = element("aside", "tlv-details");
    main.append(stage, this.pane);
    root.append(head, this.verdicts, this.notes, main);
    el.append(root);
    const panel = element("section", "tlv-panel tll-plot");
    this.hold = element("div", "tlv-scroll");
    this.svg = svgElement("svg", { class: "tll-lanes", tabindex: "0", role: "group", "aria-label": HELP, "font-family": "'DejaVu Sans Mono',Menlo,Consolas,monospace" });
    this.hold.append(this.svg);
    panel.append(this.hold);
    this.overview = svgElement("svg", { class: "tll-overview", "aria-hidden": "true" });
    panel.append(this.overview);
    this.now = element("p", "tll-now tll-hint", HINT);
    this.now.setAttribute("aria-live", "polite");
    this.legend = element("div", "tll-legend");
    stage.append(this.tools(), panel, this.now, this.legend);
    this.listen();
    this.sizes = new ResizeObserver(() => { if (this.W !== this.width()) this.later(); });
    this.sizes.observe(stage);
  }

  tools() {
    const bar = element("div", "tll-tools");
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", "Time");
    const make = (name, label, glyph, action) => {
      const node = element("button", `tll-button tll-${name}`, glyph);
      node.type = "button";
      node.title = label;
      node.setAttribute("aria-label", label);
      node.addEventListener("click", action);
      bar.append(node);
      return node;
    };
    make("in", "Zoom in (+)", "+", () => this.zoom(0.5));
    make("out", "Zoom out (−)", "−", () => this.zoom(2));
    make("all", "Show all (0)", "All", () => this.show(null));
    make("before", "Batch before (left arrow)", "◀", () => this.walk(-1));
    make("after", "Batch after (right arrow)", "▶", () => this.walk(1));
    const label = element("label", "tll-jump", "epoch ");
    this.epochs = element("select");
    this.epochs.setAttribute("aria-label", "Zoom to an epoch");
    this.epochs.addEventListener("change", () => {
      const run = this.data?.passes[Number(this.epochs.value)];
      this.show(run && this.epochs.value !== "" ? [run[0], Math.max(run[1], run[0] + 1)] : null);
    });
    label.append(this.epochs);
    const follow = element("label", "tll-follow");
    this.follow = element("input");
    this.follow.type = "checkbox";
    this.follow.checked = true;
    follow.append(this.follow, " follow");
    this.following = follow;
    this.range = element("span", "tll-range");
    bar.append(label, follow, this.range);
    return bar;
  }

  listen() {
    const { svg, root, overview } = this;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const part = event.target.closest?.("[data-id]");
      if (part) { this.chooseLane(part.dataset.id, true); return; }
      const at = this.where(event);
      if (!at) return;
      this.drag = { x: event.clientX, from: this.span()[0], moved: false, id: event.pointerId };
      svg.setPointerCapture?.(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (this.drag) {
        const by = event.clientX - this.drag.x;
        if (Math.abs(by) > 4) this.drag.moved = true;
        if (this.drag.moved && this.view) this.pan(this.drag.from - by / this.axis.scale - this.view[0]);
        if (this.drag.moved) return;
      }
      this.hover(event);
    });
    svg.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      if (!drag || drag.moved) return;
      this.hover(event);
      this.pin(this.hovered?.batch ?? null, true);
    });
    svg.addEventListener("pointercancel", () => { this.drag = null; });
    svg.addEventListener("pointerleave", () => { if (!this.drag) this.unhover(); });
    svg.addEventListener("dblclick", (event) => {
      const at = this.where(event);
      if (at) this.zoom(event.shiftKey ? 2.5 : 0.4, at.t);
    });
    svg.addEventListener("wheel", (event) => {
      if (!this.axis) return;
      if (event.ctrlKey || event.metaKey) this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.where(event)?.t);
      else if (this.view && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) this.pan((event.deltaX || event.deltaY) / this.axis.scale);
      else return;
      event.preventDefault();
    }, { passive: false });
    const jump = (event) => {
      const box = overview.getBoundingClientRect();
      const share = (event.clientX - box.left - LANE.label) / Math.max(1, box.width - LANE.label);
      const [from, to] = this.span(), width = this.view ? to - from : this.data.end / 5;
      const middle = share * this.data.end;
      this.show([middle - width / 2, middle + width / 2]);
    };
    overview.addEventListener("pointerdown", (event) => {
      if (!this.data || event.button !== 0) return;
      overview.setPointerCapture?.(event.pointerId);
      this.sliding = true;
      jump(event);
      event.preventDefault();
    });
    overview.addEventListener("pointermove", (event) => { if (this.sliding) jump(event); });
    for (const end of ["pointerup", "pointercancel"]) overview.addEventListener(end, () => { this.sliding = false; });
    root.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.target.closest("select, input") || event.ctrlKey || event.metaKey || event.altKey) { event.stopPropagation(); return; }
    const part = event.target.closest("[data-id]"), onButton = event.target.closest("button");
    const { key } = event;
    if (part && (key === "Enter" || key === " ")) this.chooseLane(part.dataset.id, true);
    else if (part && (key === "ArrowDown" || key === "ArrowUp")) {
      const next = neighbour(this.svg.querySelectorAll(".part"), part, key);
      if (next) { const id = next.dataset.id; this.chooseLane(id, true); this.svg.querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus(); }
    } else if (onButton && (key === "Enter" || key === " ")) { event.stopPropagation(); return; } else if (key === "ArrowLeft" || key === "ArrowRight") this.walk(key === "ArrowRight" ? 1 : -1, event.shiftKey);
    else if (key === "ArrowUp" || key === "ArrowDown") this.across(key === "ArrowDown" ? 1 : -1);
    else if (key === "Home") this.walk(-Infinity);
    else if (key === "End") this.walk(Infinity);
    else if (key === "+" || key === "=") this.zoom(0.5);
    else if (key === "-") this.zoom(2);
    else if (key === "0") this.show(null);
    else if (key === "PageDown" || key === "PageUp") this.pan((key === "PageDown" ? 0.8 : -0.8) * (this.span()[1] - this.span()[0]));
    else if (key === "Enter" && this.pinned !== null) this.model.send({ type: "select", id: `b${this.pinned}` });
    else if (key === "Escape") this.pin(null, false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- data ---------------------------------------------------------------------------------------------------------

  load() {
    const state = this.state = this.model.get("state");
    if (!state || !state.lanes) { this.title.textContent = "Waiting for data …"; return; }
    const before = this.data, data = this.data = state.lanes;
    this.title.textContent = state.title;
    this.subtitle.textContent = state.subtitle;
    this.order = data.batches.map((b, i) => i).filter((i) => data.batches[i].order >= 0).sort((a, b) => data.batches[a].order - data.batches[b].order);
    this.rank = new Map(this.order.map((i, k) => [i, k]));
    if (this.pinned !== null && this.pinned >= data.batches.length) this.pinned = null;
    if (this.view && before && before.running && this.follow.checked) {
      const width = this.view[1] - this.view[0];
      this.view = [Math.max(0, data.end - width), data.end];
    }
    this.following.hidden = !data.running;
    this.say();
    this.fillEpochs();
    this.fillLegend();
    this.draw();
    if (this.pinned !== null) this.fill(this.pinned, -1);
    else this.chooseLane(this.shownLane && data.rows.some((r) => r.id === this.shownLane) ? this.shownLane : state.start, false);
    this.root.dataset.draws = String(Number(this.root.dataset.draws || 0) + 1);
  }

  // The verdicts, and what went wrong.
  say() {
    const { data } = this, text = JSON.stringify([data.verdicts, data.notes]);
    if (text === this.said) return;
    this.said = text;
    this.verdicts.replaceChildren(...data.verdicts.map((v) => {
      const box = element("section", `tll-verdict ${v.good ? "tll-good" : "tll-slow"}`);
      const head = element("p", "tll-cause");
      const mark = element("span", "tll-mark", v.good ? "✓" : "!");
      mark.setAttribute("aria-hidden", "true");
      head.append(mark);
      if (v.loader) head.append(element("span", "tll-of", `${v.loader}:`));
      head.append(element("b", "", v.cause));
      if (v.settings) head.append(element("code", "tll-settings", v.settings));
      box.append(head, element("p", "tll-why", v.sentence));
      if (v.remedy) box.append(element("p", "tll-remedy", v.remedy));
      return box;
    }));
    const shown = data.notes.slice(0, 5).map((note) => element("p", "tll-note", note));
    if (data.notes.length > 5) shown.push(element("p", "tll-note", `… and ${data.notes.length - 5} more`));
    this.notes.replaceChildren(...shown);
  }

  fillEpochs() {
    const { data } = this;
    if (this.epochs.length === data.passes.length + 1) return;
    const chosen = this.epochs.value;
    const option = (value, text) => { const o = element("option", "", text); o.value = value; return o; };
    this.epochs.replaceChildren(option("", "all"), ...data.passes.map((p, i) => option(String(i), p[2])));
    this.epochs.value = chosen;
    this.epochs.closest("label").hidden = data.passes.length < 2;
  }

  fillLegend() {
    const { legend, strips } = this.data, text = JSON.stringify([legend, strips]);
    if (text === this.keyed) return;
    this.keyed = text;
    const key = (colour, words, className) => {
      const entry = element("span", "tll-key"), dot = element("i", className);
      dot.style.background = `var(--tl-${colour})`;
      entry.append(dot, words);
      return entry;
    };
    this.legend.replaceChildren(
      ...legend.map(([colour, words]) => key(colour, words, colour === "free" ? "tll-lined" : "")),
      ...strips.map(([colour, words]) => key(colour, words, "tll-thin")));
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------

  span() { return this.view ?? [0, this.data.end]; }

  show(view) {
    if (!this.data) return;
    if (view) {
      const end = this.data.end, width = Math.min(end, Math.max(20, view[1] - view[0]));
      const from = Math.min(end - width, Math.max(0, view[0]));
      view = width >= end * 0.999 ? null : [from, from + width];
    }
    this.view = view;
    if (this.data.running && view && view[1] < this.data.end * 0.999) this.follow.checked = false;
    const run = view ? this.data.passes.findIndex((p) => Math.abs(p[0] - view[0]) < 2 && Math.abs(p[1] - view[1]) < 2) : -1;
    this.epochs.value = run >= 0 ? String(run) : "";
    this.later();
  }

  zoom(by, around) {
    if (!this.data) return;
    const [from, to] = this.span();
    const middle = around ?? this.middle(from, to);
    this.show([middle - (middle - from) * by, middle + (to - middle) * by]);
  }

  // Buttons and keys zoom around the chosen batch, if it is in view.
  middle(from, to) {
    const place = this.pinned === null ? null : this.placeOf(this.pinned);
    if (place) { const m = (place[0] + place[1]) / 2; if (m > from && m < to) return m; }
    return (from + to) / 2;
  }

  pan(by) {
    if (!this.data || !this.view) return;
    const [from, to] = this.view, width = to - from;
    const start = Math.min(this.data.end - width, Math.max(0, from + by));
    this.show([start, start + width]);
  }

  later() {
    if (this.frame || !this.data) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  width() { return Math.max(320, Math.floor(this.stage.clientWidth || 800) - 2); }

  draw() {
    const { data, svg } = this;
    const W = this.W = this.width();
    const [from, to] = this.span();
    const axis = this.axis = new TimeAxis(from, to, W);
    const layer = svgElement("g");
    const clean = (name, attributes, text) => { const node = svgElement(name, attributes, text); layer.append(node); return node; };
    let y = LANE.top;
    this.rows = [];
    this.bins = 0;
    const sizes = this.lane = laneSizes(data.rows.length);
    for (const row of data.rows) {
      const isShown = row.id === this.shownLane;
      const g = svgElement("g", { class: `part tll-lane${isShown ? " tlv-sel" : ""}`, "data-id": row.id, tabindex: "0", role: "button", "aria-label": `${row.label}: show its figures` });
      g.append(svgElement("rect", { class: "shape", x: 1, y: y - 2.5, width: LANE.label - 10, height: sizes.bar + 5, rx: 4 }));
      const label = row.label.length > 13 ? `${row.label.slice(0, 12)}…` : row.label;
      const words = svgElement("text", { x: 7, y: y + sizes.bar / 2 + 4, class: "tll-label" }, label);
      if (label !== row.label) words.append(svgElement("title", {}, row.label));
      g.append(words);
      layer.append(g);
      clean("rect", { class: "tll-track", x: LANE.label, y, width: W - LANE.label, height: sizes.bar });
      const drawn = lanePaths(row.spans, data.phases.length, axis, y, sizes.bar);
      this.bins += drawn.bins;
      for (const kind of ["wide", "folded"]) {
        // the loop's own steps lie below what interrupts them
        const sorted = drawn[kind].map((d, p) => [d, p]).sort((a, b) => (data.phases[b[1]] === "step") - (data.phases[a[1]] === "step"));
        for (const [d, p] of sorted) if (d.length) clean("path", { d: d.join(""), fill: `var(--tl-${data.colours[p]})`, "data-phase": data.phases[p] });
      }
      for (const held of [0, 1]) {
        const d = [];
        for (let k = 0; k < row.ready.length; k += 4) {
          if (Number(row.ready[k + 2]) !== held || row.ready[k + 1] <= from || row.ready[k] >= to) continue;
          const x0 = axis.clipped(row.ready[k]), x1 = Math.max(x0 + 0.5, axis.clipped(row.ready[k + 1]));
          d.push(`M${x0.toFixed(1)} ${y + sizes.bar + 2}H${x1.toFixed(1)}v${sizes.strip}H${x0.toFixed(1)}z`);
        }
        if (d.length) clean("path", { d: d.join(""), fill: `var(--tl-${held ? "warn" : "reserved"})`, class: held ? "tll-held" : "tll-ready" });
      }
      this.rows.push({ y, row });
      y += sizes.row;
    }
    this.foot = y;
    if (data.rows.length > 1) {
      const top = Math.max(1, data.capacity, ...this.highest()), base = y + 6 + LANE.queue, high = LANE.queue - 6;
      const d = stepPath(data.depth, axis, base, high, top);
      clean("text", { x: 7, y: y + 22, class: "tll-label" }, "batches ready");
      if (data.capacity) {
        clean("text", { x: 7, y: y + 37, class: "tll-small" }, `${data.capacity} at most`);
        const line = base - (high * data.capacity) / top;
        clean("line", { x1: LANE.label, x2: W, y1: line, y2: line, class: "tll-most" });
      }
      clean("path", { d: `${d}V${base}H${LANE.label}Z`, class: "tll-area" });
      clean("path", { d, class: "tll-curve" });
      clean("line", { x1: LANE.label, x2: W, y1: base, y2: base, class: "tll-base" });
      this.queue = [y + 6, base];
      this.foot = base + 2;
    } else this.queue = null;
    this.epochMarks(clean, axis, from, to);
    this.ticks(clean, axis, from, to);
    const H = this.foot + 22;
    this.light = svgElement("g", { class: "tll-light" });
    this.cursor = svgElement("line", { class: "tll-cursor", y1: LANE.top - 4, y2: this.foot, visibility: "hidden" });
    if (this.hovered) this.point(axis.x(this.hovered.t));
    layer.append(this.light, this.cursor);
    const focused = document.activeElement?.closest?.(".tll-lane");
    const focus = focused && svg.contains(focused) ? focused.dataset.id : null;
    svg.replaceChildren(layer);
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.setAttribute("width", W);
    svg.setAttribute("height", H);
    if (focus) svg.querySelector(`[data-id="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
    svg.classList.toggle("tll-zoomed", this.view !== null);
    this.range.textContent = this.view ? `${timeText(from)} … ${timeText(to)} of ${timeText(data.end)}` : `${timeText(data.end)} in all`;
    this.root.dataset.from = String(Math.round(from));
    this.root.dataset.to = String(Math.round(to));
    this.root.dataset.bins = String(this.bins);
    this.drawOverview();
    this.paint();
  }

  highest() { return [this.data.depth.reduce((m, [, n]) => Math.max(m, n), 0)]; }

  epochMarks(clean, axis, from, to) {
    let free = -1;
    this.data.passes.forEach(([began, ended, label], run) => {
      if (ended < from || began > to) return;
      const x = axis.clipped(began);
      if (began > from) clean("line", { x1: x, x2: x, y1: LANE.top - 10, y2: this.foot, class: "tll-epoch" });
      const wide = label.length * 10 * 0.615, from_ = Math.max(x + 3, LANE.label + 2);
      if (from_ < free || from_ + wide > axis.right) return;
      clean("text", { x: from_, y: LANE.top - 8, class: "tll-small" }, label);
      free = from_ + wide + 10;
    });
  }

  ticks(clean, axis, from, to) {
    const count = Math.max(2, Math.floor((axis.right - axis.left) / 95));
    const step = niceStep((to - from) / count);
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const x = axis.x(t), text = tickText(Math.round(t * 1e3) / 1e3, step), wide = text.length * 6.2;
      clean("line", { x1: x, x2: x, y1: this.foot, y2: this.foot + 4, class: "tll-tick" });
      const anchor = x + wide / 2 > axis.right ? "end" : x - wide / 2 < axis.left - 8 ? "start" : "middle";
      clean("text", { x: anchor === "end" ? Math.min(x, axis.right) : x, y: this.foot + 16, class: "tll-small", "text-anchor": anchor }, text);
    }
  }

  drawOverview() {
    const { overview, data, W } = this, H = 16;
    overview.style.display = this.view ? "" : "none";
    if (!this.view) { overview.replaceChildren(); return; }
    const axis = new TimeAxis(0, data.end, W), [from, to] = this.view;
    overview.setAttribute("viewBox", `0 0 ${W} ${H}`);
    overview.setAttribute("width", W);
    overview.setAttribute("height", H);
    const x = axis.x(from), w = Math.max(4, axis.x(to) - x);
    const nodes = [svgElement("rect", { x: LANE.label, y: 2, width: W - LANE.label, height: 12, class: "tll-track" })];
    for (const [began] of data.passes) nodes.push(svgElement("line", { x1: axis.x(began), x2: axis.x(began), y1: 2, y2: 14, class: "tll-epoch" }));
    nodes.push(svgElement("rect", { x, y: 1, width: w, height: 14, rx: 3, class: "tll-window" }), svgElement("text", { x: 7, y: 12, class: "tll-small" }, "whole time"));
    overview.replaceChildren(...nodes);
  }

  // ---- choosing -----------------------------------------------------------------------------------------------------

  where(event) {
    if (!this.axis) return null;
    const box = this.svg.getBoundingClientRect();
    const scale = this.W / Math.max(1, box.width), x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    if (x < LANE.label || x > this.W) return null;
    return { x, y, t: this.axis.t(x) };
  }

  hover(event) {
    const at = this.where(event);
    if (!at) { this.unhover(); return; }
    this.hovered = this.hit(at);
    this.hovered.t = at.t;
    this.point(at.x);
    this.paint();
    const { batch, phase, ready } = this.hovered;
    if (batch >= 0) this.fill(batch, phase);
    else if (this.pinned !== null) this.fill(this.pinned, -1);
    this.tell(batch, phase, at.t, ready);
  }

  point(x) {
    const inside = x >= this.axis.left && x <= this.axis.right;
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    this.cursor.setAttribute("visibility", inside ? "visible" : "hidden");
  }

  unhover() {
    if (!this.hovered) return;
    this.hovered = null;
    this.cursor?.setAttribute("visibility", "hidden");
    this.paint();
    if (this.pinned !== null) { this.fill(this.pinned, -1); this.tell(this.pinned, -1); } else if (this.shownLane) { this.chooseLane(this.shownLane, false); this.write(""); }
  }

  hit({ t, y }) {
    const slack = 3 / this.axis.scale;
    const place = this.rows.find((r) => y >= r.y - 4 && y < r.y + this.lane.row - 4);
    if (!place) return { batch: -1, phase: -1, ready: this.readyAt(t) };
    if (y >= place.y + this.lane.bar + 1 && place.row.ready.length) {
      const k = spanAt(place.row.ready, t, slack);
      if (k >= 0) return { batch: place.row.ready[k + 3], phase: -1, ready: null };
    }
    const k = spanAt(place.row.spans, t, slack);
    return k < 0 ? { batch: -1, phase: -1, ready: this.readyAt(t) } : { batch: place.row.spans[k + 3], phase: place.row.spans[k + 2], ready: null };
  }

  readyAt(t) {
    let level = 0;
    for (const [time, n] of this.data.depth) { if (time > t) break; level = n; }
    return level;
  }

  tell(batch, phase, t, ready) {
    const { data } = this, parts = [];
    if (t !== undefined) parts.push(`at ${timeText(Math.max(0, t))}`);
    if (batch >= 0) {
      const b = data.batches[batch];
      parts.push(`batch ${b.n}${b.w >= 0 ? ` of worker ${b.w}` : ""}`);
      if (data.passes.length > 1) parts[parts.length - 1] += ` (${data.passes[b.run][2]})`;
      for (const name of ["read", "collate", "lay ready", "loop waited"]) {
        const time = b.t[data.times.indexOf(name)];
        if (time >= 0) parts.push(`${name} ${timeText(time)}`);
      }
      if (b.error) parts.push(b.error);
    }
    if (phase >= 0) parts.splice(1, 0, data.names[phase]);
    if (ready !== null && ready !== undefined && data.rows.length > 1) parts.push(ready === 1 ? "1 batch ready" : `${ready} batches ready`);
    this.write(parts.join(" · "));
  }

  write(text) {
    this.now.textContent = text || HINT;
    this.now.classList.toggle("tll-hint", !text);
  }

  // The stretch from the first to the last that was done for a batch, in microseconds.
  placeOf(batch) {
    let from = Infinity, to = -Infinity;
    for (const { spans, ready } of this.data.rows) for (const list of [spans, ready]) {
      for (let k = 3; k < list.length; k += 4) if (list[k] === batch && this.data.phases[list[k - 1]] !== "idle") { from = Math.min(from, list[k - 3]); to = Math.max(to, list[k - 2]); }
    }
    return from <= to ? [from, to] : null;
  }

  // Outlines around everything that was done for the batch below the pointer, or the chosen one.
  paint() {
    if (!this.light) return;
    const batch = this.hovered && this.hovered.batch >= 0 ? this.hovered.batch : this.pinned;
    const nodes = [];
    if (batch !== null) for (const { y, row } of this.rows) {
      for (const [list, top, height, least] of [[row.spans, y, this.lane.bar, 3], [row.ready, y + this.lane.bar + 1, this.lane.strip + 2, 3]]) {
        for (let k = 0; k < list.length; k += 4) {
          if (list[k + 3] !== batch || list[k + 1] <= this.axis.from || list[k] >= this.axis.to) continue;
          if (list === row.spans && this.data.phases[list[k + 2]] === "idle") continue;
          const x = this.axis.clipped(list[k]), w = Math.max(least, this.axis.clipped(list[k + 1]) - x);
          nodes.push(svgElement("rect", { x: (x - 0.5).toFixed(1), y: top - 0.5, width: (w + 1).toFixed(1), height: height + 1, class: "tll-hit" }));
        }
      }
    }
    this.light.replaceChildren(...nodes);
    this.root.dataset.batch = batch === null ? "" : String(this.data.batches[batch].n);
  }

  // What is known of a batch.
  facts(b) {
    const { data } = this;
    const rows = [["epoch", data.passes[b.run][2]]];
    if (b.w >= 0) rows.push(["worker", b.seed ? `${b.w}, seed ${b.seed}` : String(b.w)]);
    if (b.indices) rows.push(["indices", b.indices]);
    if (b.holds) rows.push(["holds", b.holds]);
    const cpu = { read: b.cpu[0], collate: b.cpu[1] };
    data.times.forEach((name, k) => {
      if (b.t[k] < 0) return;
      const share = cpu[name] >= 0 && b.t[k] > 0 ? `, computing ${Math.round(Math.min(1, cpu[name] / b.t[k]) * 100)}%` : "";
      rows.push([name, timeText(b.t[k]) + share]);
    });
    if (b.slow) rows.push(["slowest", `sample ${b.slow[0]}, ${timeText(b.slow[1])}`]);
    if (b.held) rows.push(["held", `${timeText(b.held[0])} behind batch ${b.held[1]}`]);
    if (b.order < 0) rows.push(["given out", data.running ? "not yet" : "no"]);
    return rows;
  }

  fill(batch, phase) {
    const b = this.data.batches[batch];
    fillDetails(this.pane, {
      title: `Batch ${b.n}`, subtitle: phase >= 0 ? this.data.names[phase] : "", warning: b.error, code: "", tables: [], rows: this.facts(b),
    }, `b${batch}`);
    for (const node of this.svg.querySelectorAll(".tll-lane.tlv-sel")) node.classList.remove("tlv-sel");
  }

  pin(batch, tell) {
    if (batch !== null && batch < 0) batch = null;
    this.pinned = batch;
    this.paint();
    if (batch === null) { this.write(""); if (this.shownLane) this.chooseLane(this.shownLane, false); return; }
    this.fill(batch, -1);
    this.tell(batch, -1);
    if (tell) this.model.send({ type: "select", id: `b${batch}` });
  }

  chooseLane(id, tell) {
    const note = this.state.details[id];
    if (!note) { fillDetails(this.pane, null, ""); return; }
    this.shownLane = id;
    if (tell) { this.pinned = null; this.hovered = null; this.paint(); this.write(""); }
    fillDetails(this.pane, note, id);
    for (const node of this.svg.querySelectorAll(".tll-lane")) node.classList.toggle("tlv-sel", node.dataset.id === id);
    if (tell) this.model.send({ type: "select", id });
  }

  // The next batch in the order in which they were given out, or the worker's next.
  walk(by, same = false) {
    if (!this.data || !this.order.length) return;
    let list = this.order;
    const worker = this.pinned === null ? null : this.data.batches[this.pinned].w;
    if (same && worker !== null) list = list.filter((i) => this.data.batches[i].w === worker);
    const at = this.pinned === null ? -1 : list.indexOf(this.pinned);
    let to = at + by;
    if (at < 0) to = by > 0 ? this.firstInView(list) : list.length - 1;
    if (by === Infinity) to = list.length - 1;
    if (by === -Infinity) to = 0;
    this.pin(list[Math.max(0, Math.min(list.length - 1, to))], false);
    this.bring();
  }

  firstInView(list) {
    const [from] = this.span();
    const found = list.findIndex((i) => { const p = this.placeOf(i); return p && p[1] >= from; });
    return found < 0 ? 0 : found;
  }

  // From a batch to what another lane did at the same time.
  across(by) {
    if (!this.data) return;
    if (this.pinned === null) { this.walk(1); return; }
    const place = this.placeOf(this.pinned);
    if (!place) return;
    const t = (place[0] + place[1]) / 2, rows = this.data.rows;
    const worker = this.data.batches[this.pinned].w;
    let lane = rows.findIndex((r, k) => k > 0 && r.spans.includes(this.pinned) && this.isOn(r, this.pinned));
    if (worker < 0 || lane < 0) lane = 0;
    for (let k = lane + by; k > 0 && k < rows.length; k += by) {
      const at = spanAt(rows[k].spans, t, Infinity);
      if (at >= 0 && rows[k].spans[at + 3] >= 0) { this.pin(rows[k].spans[at + 3], false); this.bring(); return; }
    }
  }

  isOn(row, batch) {
    for (let k = 3; k < row.spans.length; k += 4) if (row.spans[k] === batch) return true;
    return false;
  }

  bring() {
    if (!this.view || this.pinned === null) return;
    const place = this.placeOf(this.pinned), [from, to] = this.view;
    if (place && (place[0] < from || place[1] > to)) {
      const middle = (place[0] + place[1]) / 2;
      this.show([middle - (to - from) / 2, middle + (to - from) / 2]);
    }
  }

  close() { this.sizes.disconnect(); cancelAnimationFrame(this.frame); }
}

export default {
  render({ model, el }) {
    const panel = new LoaderPanel(model, el);
    const load = () => panel.load();
    model.on("change:state", load);
    load();
    return () => { model.off("change:state", load); panel.close(); };
  },
};
