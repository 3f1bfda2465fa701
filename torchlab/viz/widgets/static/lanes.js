// Lanes of work over time: pixels and times, and stretches narrower than a pixel drawn together.

const LANE = { label: 104, queue: 46, top: 22, bin: 2 };

// The heights of a lane; with many workers they are low, so that the axis stays in view.
const laneSizes = (rows) => (rows <= 16 ? { row: 30, bar: 18, strip: 4 } : rows <= 32 ? { row: 20, bar: 11, strip: 3 } : { row: 15, bar: 9, strip: 2 });

class TimeAxis {
  constructor(from, to, width) {
    this.from = from; this.to = to; this.left = LANE.label; this.right = width;
    this.scale = (width - LANE.label) / Math.max(1, to - from);
  }
  x(t) { return this.left + (t - this.from) * this.scale; }
  t(x) { return this.from + (x - this.left) / this.scale; }
  clipped(t) { return this.x(Math.min(this.to, Math.max(this.from, t))); }
}

// The next of 1, 2, 5, 10 … times a power of ten.
function niceStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 5, 10].map((f) => f * power).find((s) => step <= s * (1 + 1e-9));
}

// A round time in microseconds; all ticks of an axis in one unit.
function tickText(us, step) {
  if (us === 0) return "0";
  const [unit, scale] = step >= 1e5 ? ["s", 1e6] : step >= 1e3 ? ["ms", 1e3] : ["µs", 1];
  const digits = Math.max(0, Math.min(3, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return `${(us / scale).toFixed(digits)} ${unit}`;
}

// A time in three digits.
function timeText(us) {
  if (us >= 99.95e6) return `${(us / 1e6).toFixed(0)} s`;
  const [unit, scale] = us >= 999500 ? ["s", 1e6] : us >= 999.5 ? ["ms", 1e3] : ["µs", 1];
  return `${Number((us / scale).toPrecision(3))} ${unit}`;
}

// Path data for each phase of a lane. `spans`: began, ended, phase, batch, … ; later ones lie above. Where several
// lie in two pixels, narrower than one, a column instead: in it every phase is as high as its share of the time.
function lanePaths(spans, count, axis, y, bar) {
  const paths = Array.from({ length: count }, () => []), bins = new Map(), B = LANE.bin;
  const shown = [], narrow = new Map();
  for (let k = 0; k < spans.length; k += 4) {
    const began = spans[k], ended = spans[k + 1];
    if (ended <= axis.from || began >= axis.to || ended <= began) continue;
    const x0 = axis.clipped(began), x1 = axis.clipped(ended);
    shown.push([x0, x1, spans[k + 2]]);
    const at = Math.floor((x0 + x1) / 2 / B);
    if (x1 - x0 < 1) narrow.set(at, (narrow.get(at) || 0) + 1);
  }
  for (const [at, n] of narrow) if (n > 1) bins.set(at, new Float64Array(count));
  for (const [x0, x1, phase] of shown) {
    const own = x1 - x0 < 1 ? bins.get(Math.floor((x0 + x1) / 2 / B)) : null;
    if (own) { own[phase] += x1 - x0; continue; }
    let from = x0;
    const rect = (to) => { if (to > from) paths[phase].push(`M${from.toFixed(1)} ${y}H${to.toFixed(1)}v${bar}H${from.toFixed(1)}z`); };
    if (bins.size) for (let at = Math.floor(x0 / B); at <= Math.floor(x1 / B); at++) {
      const bin = bins.get(at);
      if (!bin) continue;
      bin[phase] += Math.min(x1, (at + 1) * B) - Math.max(x0, at * B);
      rect(at * B);
      from = (at + 1) * B;
    }
    rect(x1);
  }
  const folded = Array.from({ length: count }, () => []);
  for (const [at, bin] of bins) {
    let whole = 0;
    for (const part of bin) whole += part;
    whole = Math.max(B, whole);
    let foot = y + bar;
    for (let p = 0; p < count; p++) {
      const height = (bar * bin[p]) / whole;
      if (height < 0.2) continue;
      foot -= height;
      folded[p].push(`M${at * B} ${foot.toFixed(1)}h${B}v${height.toFixed(1)}h-${B}z`);
    }
  }
  return { wide: paths, folded, bins: bins.size };
}

// A step curve; of many changes within a pixel the extremes.
function stepPath(steps, axis, base, height, top) {
  const y = (n) => (base - (height * n) / top).toFixed(1);
  let level = 0, k = 0;
  while (k < steps.length && steps[k][0] <= axis.from) level = steps[k++][1];
  let out = `M${axis.left} ${y(level)}`, x = null, low = level, high = level;
  const close = () => { if (x !== null) out += `H${x}V${y(high)}V${y(low)}V${y(level)}`; };
  for (; k < steps.length && steps[k][0] < axis.to; k++) {
    const at = Math.floor(axis.x(steps[k][0]));
    if (at !== x) { close(); x = at; low = high = level; }
    level = steps[k][1];
    low = Math.min(low, level); high = Math.max(high, level);
  }
  close();
  return `${out}H${axis.right}`;
}

// The stretch of a lane at a time, the topmost; with nothing there the nearest within `slack`.
function spanAt(spans, t, slack) {
  let found = -1, least = slack;
  for (let k = 0; k < spans.length; k += 4) {
    if (spans[k] <= t && t < spans[k + 1]) { found = k; least = 0; continue; }
    const off = t < spans[k] ? spans[k] - t : t - spans[k + 1];
    if (off < least) { least = off; found = k; }
  }
  return found;
}
