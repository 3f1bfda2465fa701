import { ISample, WINDOW } from './kernelMemory';

const NS = 'http://www.w3.org/2000/svg';
const WIDTH = 240;
const HEIGHT = 44;

/** Seconds that one step of the curve stands for: two units of the picture's width. */
const STEP = 0.5;

/** The least and the most in one step, and when the step begins. */
interface IStep {
  start: number;
  low: number;
  high: number;
}

/**
 * The samples in steps of half a second that begin at fixed times, so that the curve moves and does
 * not shimmer. A step without a sample has the level that the last one left.
 */
function steps(samples: readonly ISample[], time: number): IStep[] {
  const found: IStep[] = [];
  const first = Math.max(samples[0].time, time - WINDOW);
  let level = samples[0].allocated;
  let next = 0;
  for (let start = Math.floor(first / STEP) * STEP; start <= time; start += STEP) {
    const step: IStep = { start, low: level, high: level };
    for (; next < samples.length && samples[next].time < start + STEP; next++) {
      const { time: at, allocated, high } = samples[next];
      level = allocated;
      if (at < start) {
        step.low = step.high = level; // before the window: it only sets the level
      } else {
        step.low = Math.min(step.low, allocated);
        step.high = Math.max(step.high, high);
      }
    }
    found.push(step);
  }
  return found;
}

/**
 * The last minute of one device: what it held at most as a line, shaded below, and shaded darker up
 * to what it held at least. The picture stretches to the panel's width; lines keep their thickness.
 */
export class Sparkline {
  constructor() {
    this.node = document.createElementNS(NS, 'svg');
    this.node.setAttribute('class', 'tl-spark');
    this.node.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
    this.node.setAttribute('preserveAspectRatio', 'none');
    this.node.setAttribute('aria-hidden', 'true');
    for (let i = 1; i < 4; i++) {
      const grid = this._add('line', 'tl-spark-grid');
      const x = String((WIDTH * i) / 4);
      grid.setAttribute('x1', x);
      grid.setAttribute('x2', x);
      grid.setAttribute('y1', '0');
      grid.setAttribute('y2', String(HEIGHT));
    }
    this._area = this._add('path', 'tl-spark-area');
    this._floor = this._add('path', 'tl-spark-area');
    this._line = this._add('path', 'tl-spark-line');
  }

  readonly node: SVGSVGElement;

  /** Draw the samples as of `time`; returns the most in the window, in bytes. */
  draw(samples: readonly ISample[], time: number): number {
    const found = samples.length ? steps(samples, time) : [];
    const top = Math.max(0, ...found.map(step => step.high));
    const scale = top > 0 ? (HEIGHT - 4) / top : 0;
    const x = (t: number) =>
      Math.max(0, WIDTH * (1 - (time - t) / WINDOW)).toFixed(1);
    const outline = (of: (step: IStep) => number) => {
      let path = '';
      for (const step of found) {
        const y = (HEIGHT - 1 - of(step) * scale).toFixed(1);
        path += path ? `H${x(step.start)}V${y}` : `M${x(step.start)} ${y}`;
      }
      return path && `${path}H${WIDTH}`;
    };
    const line = outline(step => step.high);
    const floor = outline(step => step.low);
    const close = found.length ? `V${HEIGHT}H${x(found[0].start)}Z` : '';
    this._line.setAttribute('d', line);
    this._area.setAttribute('d', line + close);
    this._floor.setAttribute('d', floor + close);
    return top;
  }

  private _add(tag: string, className: string): SVGElement {
    const element = document.createElementNS(NS, tag) as SVGElement;
    element.setAttribute('class', className);
    this.node.append(element);
    return element;
  }

  private _area: SVGElement;
  private _floor: SVGElement;
  private _line: SVGElement;
}
