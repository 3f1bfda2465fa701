import { ISample, WINDOW } from './kernelMemory';

const NS = 'http://www.w3.org/2000/svg';
const WIDTH = 240;
const HEIGHT = 44;

/**
 * The last minute of one device as an area with a step line: memory changes in steps. The picture
 * stretches to the panel's width; lines keep their thickness.
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
    this._line = this._add('path', 'tl-spark-line');
  }

  readonly node: SVGSVGElement;

  /** Draw the samples as of `time`; returns the most in the window, in bytes. */
  draw(samples: readonly ISample[], time: number): number {
    let top = 0;
    for (const s of samples) {
      top = Math.max(top, s.time >= time - WINDOW ? s.high : s.allocated);
    }
    if (!samples.length) {
      this._area.setAttribute('d', '');
      this._line.setAttribute('d', '');
      return 0;
    }
    const scale = top > 0 ? (HEIGHT - 4) / top : 0;
    const x = (t: number) =>
      Math.max(0, WIDTH * (1 - (time - t) / WINDOW)).toFixed(1);
    const y = (bytes: number) => (HEIGHT - 1 - bytes * scale).toFixed(1);
    const start = x(samples[0].time);
    let path = `M${start} ${y(samples[0].allocated)}`;
    for (const s of samples.slice(1)) {
      path += `H${x(s.time)}V${y(s.high)}`;
      if (s.allocated < s.high) {
        path += `V${y(s.allocated)}`;
      }
    }
    path += `H${WIDTH}`;
    this._line.setAttribute('d', path);
    this._area.setAttribute('d', `${path}V${HEIGHT}H${start}Z`);
    return top;
  }

  private _add(tag: string, className: string): SVGElement {
    const element = document.createElementNS(NS, tag) as SVGElement;
    element.setAttribute('class', className);
    this.node.append(element);
    return element;
  }

  private _area: SVGElement;
  private _line: SVGElement;
}
