// Shared by all renderers: builds the page once, patches it in place, handles choice and keys.
// A renderer is `picture({ onSelect, onHover, onDraw })`; it draws nothing itself: the SVG comes from Python.

const SVG_NS = "http://www.w3.org/2000/svg";

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

const parser = new DOMParser();

// SVG text → element, without anything that could run.
function parseSvg(text) {
  const root = parser.parseFromString(text, "image/svg+xml").documentElement;
  if (root.namespaceURI !== SVG_NS || root.querySelector("parsererror")) return null;
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (["script", "foreignObject", "a", "use", "image"].includes(node.localName)) { node.remove(); continue; }
    for (const { name } of [...node.attributes]) {
      if (name.startsWith("on") || name.endsWith("href")) node.removeAttribute(name);
    }
  }
  return root;
}

const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute("data-key") : null);

// Makes `old` equal to `next`, keeping elements (and so focus, hover and pending clicks) where it can.
function patch(old, next) {
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...next.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const kept = new Map();
  for (const child of old.childNodes) { const key = keyOf(child); if (key !== null) kept.set(key, child); }
  let place = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    let match = key !== null ? kept.get(key) : place;
    if (key === null && match && keyOf(match) !== null) match = null;
    if (match && match.nodeType === wanted.nodeType && match.nodeName === wanted.nodeName) {
      if (match !== place) old.insertBefore(match, place); else place = place.nextSibling;
      if (wanted.nodeType === 1) patch(match, wanted);
      else if (match.data !== wanted.data) match.data = wanted.data;
    } else {
      old.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) { const after = place.nextSibling; place.remove(); place = after; }
}

function fillDetails(pane, note, id) {
  pane.replaceChildren();
  pane.dataset.shown = id || "";
  if (!note) { pane.append(element("p", "tlv-hint", "Click a part of the picture to see its details.")); return; }
  pane.append(element("h4", "tlv-name", note.title));
  if (note.subtitle) pane.append(element("p", "tlv-sub", note.subtitle));
  if (note.warning) pane.append(element("p", "tlv-warning", note.warning));
  const list = element("dl", "tlv-rows");
  for (const [key, value] of note.rows) list.append(element("dt", "", key), element("dd", "", value));
  if (note.rows.length) pane.append(list);
  if (note.code) pane.append(element("pre", "tlv-code", note.code));
  for (const table of note.tables) {
    const box = element("div", "tlv-scroll");
    const grid = element("table");
    grid.append(element("caption", "", table.title));
    const head = grid.createTHead().insertRow();
    for (const text of table.head) head.append(element("th", "", text));
    const body = grid.createTBody();
    for (const cells of table.rows) {
      const row = body.insertRow();
      for (const text of cells) row.insertCell().textContent = text;
    }
    box.append(grid);
    pane.append(box);
  }
}

function neighbour(parts, from, key) {
  const box = from.getBoundingClientRect();
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  let best = null, least = Infinity;
  for (const part of parts) {
    if (part === from) continue;
    const other = part.getBoundingClientRect();
    const dx = other.x + other.width / 2 - x, dy = other.y + other.height / 2 - y;
    const [ahead, aside] = { ArrowDown: [dy, dx], ArrowUp: [-dy, dx], ArrowRight: [dx, dy], ArrowLeft: [-dx, dy] }[key];
    if (ahead <= 1) continue;
    const cost = ahead + 3 * Math.abs(aside);
    if (cost < least) { least = cost; best = part; }
  }
  return best;
}

// A frame over a part's shape, last in its group: parts that lie side by side paint over half of each
// other's outlines. `name` says which frames `unring` takes away again.
function ring(part, name) {
  const shape = part?.querySelector(":scope > .shape");
  if (!shape) return;
  const frame = shape.cloneNode();
  frame.setAttribute("class", `tlv-ring ${name}`);
  if (part.hasAttribute("transform")) frame.setAttribute("transform", part.getAttribute("transform"));
  part.parentNode.append(frame);
}

function unring(stage, name) {
  for (const frame of stage.querySelectorAll(`.tlv-ring.${name}`)) frame.remove();
}

function picture(hooks = {}) {
  return {
    render({ model, el }) {
      const root = element("div", "tlviz tlviz-live");
      const head = element("div", "tlv-head");
      const title = element("h3"), subtitle = element("p", "tlv-sub");
      head.append(title, subtitle);
      const main = element("div", "tlv-main"), stage = element("div", "tlv-stage");
      const pane = element("aside", "tlv-details");
      pane.setAttribute("aria-live", "polite");
      main.append(stage, pane);
      root.append(head, main);
      el.append(root);
      const panels = new Map();
      const view = { root, stage, state: null, selected: null };
      const find = (id) => stage.querySelector(`[data-id="${CSS.escape(id)}"]`);

      const mark = () => {
        for (const node of stage.querySelectorAll(".tlv-sel,.tlv-near")) node.classList.remove("tlv-sel", "tlv-near");
        unring(stage, "tlv-chosen");
        if (view.selected === null) return;
        const chosen = find(view.selected);
        chosen?.classList.add("tlv-sel");
        ring(chosen, "tlv-chosen");
        for (const edge of stage.querySelectorAll("[data-src]")) {
          if (edge.dataset.src === view.selected || edge.dataset.dst === view.selected) edge.classList.add("tlv-near");
        }
        hooks.onSelect?.(view, view.selected);
      };

      const select = (id, tell) => {
        view.selected = id;
        fillDetails(pane, view.state.details[id], id);
        mark();
        if (tell) model.send({ type: "select", id });
      };

      const draw = () => {
        const state = view.state = model.get("state");
        if (!state || !state.panels) { title.textContent = "Waiting for data …"; return; }
        title.textContent = state.title;
        subtitle.textContent = state.subtitle;
        const seen = new Set();
        for (const panel of state.panels) {
          seen.add(panel.id);
          const next = parseSvg(panel.svg);
          if (!next) continue;
          let entry = panels.get(panel.id);
          if (!entry) {
            const box = element("section", `tlv-panel tlv-${panel.id}`);
            const caption = element("h4"), hold = element("div", "tlv-scroll");
            const svg = document.importNode(next, true);
            hold.append(svg);
            box.append(caption, hold);
            stage.append(box);
            entry = { box, caption, svg };
            panels.set(panel.id, entry);
          } else {
            patch(entry.svg, next);
          }
          entry.width = panel.width * (panel.stretch ? 1.2 : 1);
          // two panels stand side by side if 90% of their size fits
          entry.box.style.flex = `1 1 ${Math.round(panel.width * 0.9)}px`;
          entry.box.style.maxWidth = `min(100%, ${Math.round(entry.width)}px)`;
          entry.caption.textContent = panel.title;
          // text stays legible: a panel shrinks to 85% of its size, then it scrolls
          entry.svg.style.minWidth = `${Math.round(panel.width * 0.85)}px`;
          entry.svg.style.maxWidth = `${Math.round(entry.width)}px`;
          entry.svg.style.width = "100%";
        }
        for (const [id, entry] of panels) if (!seen.has(id)) { entry.box.remove(); panels.delete(id); }
        hooks.onDraw?.(view);
        const wanted = view.selected !== null && state.details[view.selected] ? view.selected : state.start;
        if (wanted) select(wanted, false); else { view.selected = null; fillDetails(pane, null, ""); }
        root.dataset.draws = String(Number(root.dataset.draws || 0) + 1);
      };

      const partOf = (event) => event.target.closest?.("[data-id]");
      stage.addEventListener("pointerdown", (event) => {
        const part = partOf(event);
        if (part && event.button === 0) select(part.dataset.id, true);
      });
      stage.addEventListener("keydown", (event) => {
        const part = partOf(event);
        if (!part) return;
        if (event.key === "Enter" || event.key === " ") {
          select(part.dataset.id, true);
        } else if (event.key.startsWith("Arrow")) {
          const next = neighbour(part.closest("svg").querySelectorAll(".part"), part, event.key);
          if (next) { next.focus(); select(next.dataset.id, true); }
        } else {
          return;
        }
        event.preventDefault();
        event.stopPropagation();
      });
      const hover = (event) => hooks.onHover?.(view, event.type === "pointerover" ? partOf(event) : null);
      stage.addEventListener("pointerover", hover);
      stage.addEventListener("pointerout", hover);

      model.on("change:state", draw);
      draw();
      return () => model.off("change:state", draw);
    },
  };
}
