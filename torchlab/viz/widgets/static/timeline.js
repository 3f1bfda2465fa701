// What backward holds over its steps, stacked, and the norm of every step as a row of ticks; a click goes there.

function svgElement(tag, attributes = {}, text) {
  const node = document.createElementNS(SVG_NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function bytesText(n) {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = n, k = -1;
  do { value /= 1024; k++; } while (value >= 1024 && k < 3);
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)} ${units[k]}`;
}

const HELD_NAMES = ["saved tensors", "gradients on their way", "the leaves’ .grad"];
const HELD_COLOURS = ["op-line", "run", "leaf-line"];

function timeline(player, colourOf, seek) {
  const W = 1000, H = 66, AREA = 50;
  const rows = [player.begin, ...player.steps.map((s) => s.held)];
  const n = Math.max(1, player.steps.length);
  const sum = (r) => r[0] + r[1] + r[2];
  const peak = Math.max(1, ...rows.map(sum));
  const box = element("div", "tlb-time");
  const svg = svgElement("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  let base = rows.map(() => 0);
  HELD_COLOURS.forEach((colour, k) => {
    const up = rows.map((r, i) => base[i] + r[k]);
    const at = (v, i) => `${((W * i) / n).toFixed(1)},${(AREA * (1 - v / peak)).toFixed(1)}`;
    const points = [...up.map(at), ...base.map(at).reverse()].join(" ");
    svg.append(svgElement("polygon", { points, fill: `var(--tl-${colour})`, "fill-opacity": 0.7 }));
    base = up;
  });
  const wide = W / n;
  // many steps share a pixel: at most 500 ticks, each with the hottest colour of its steps
  const ticks = Math.min(n, 500), per = player.steps.length / ticks;
  for (let t = 0; t < ticks && player.steps.length; t++) {
    const some = player.steps.slice(Math.floor(t * per), Math.max(Math.floor(t * per) + 1, Math.floor((t + 1) * per)));
    const size = some.reduce((m, s) => worst(m, s.size), null);
    const x = (W * t) / ticks;
    svg.append(svgElement("rect", { x: x.toFixed(1), y: AREA + 6, width: Math.max(W / ticks - (wide > 8 ? 2 : 0), 0.5).toFixed(1), height: 10, fill: `var(--tl-${solid(colourOf(size))})` }));
  }
  const cursor = svgElement("line", { x1: 0, y1: 0, x2: 0, y2: H, stroke: "var(--tl-accent)", "stroke-width": 2, "vector-effect": "non-scaling-stroke" });
  svg.append(cursor);
  const legend = element("div", "tlb-legend tlb-held");
  const values = HELD_NAMES.map((name, k) => {
    const entry = element("span", "tlb-key"), dot = element("i"), value = element("b");
    dot.style.background = `var(--tl-${HELD_COLOURS[k]})`;
    entry.append(dot, `${name} `, value);
    legend.append(entry);
    return value;
  });
  legend.append(element("span", "tlb-key", `peak ${bytesText(Math.max(...rows.map(sum)))}`));
  box.append(svg);
  svg.addEventListener("pointerdown", (event) => {
    const r = svg.getBoundingClientRect();
    seek(Math.round(((event.clientX - r.left) / r.width) * player.steps.length));
  });
  return {
    box, legend,
    show(position) {
      const x = ((W * position) / n).toFixed(1);
      cursor.setAttribute("x1", x); cursor.setAttribute("x2", x);
      rows[position].forEach((v, k) => { values[k].textContent = bytesText(v); });
    },
  };
}

// What is not finite must not be taken for the ramp's red end: in small fields it has the text's colour.
const solid = (colour) => (colour === "error" ? "ink" : colour);

// The larger of two norms; one that is not finite wins.
function worst(a, b) {
  if (typeof a === "string") return a;
  if (typeof b === "string" || a === null) return b;
  return b === null ? a : Math.max(a, b);
}
