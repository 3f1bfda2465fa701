import { formatBytes, formatCount, formatShare } from './format';
import { IDeviceMemory, ISample } from './kernelMemory';
import { Sparkline } from './sparkline';

const WHAT: Record<string, string> = {
  cpu: 'this process',
  sim: 'simulated',
  cuda: 'GPU'
};

const HINTS: Record<string, string> = {
  allocated: 'Bytes in blocks that tensors hold now',
  resident: 'Memory of the whole kernel process that is in RAM now',
  reserved: 'Bytes in segments the caching allocator took from the device',
  peak: 'The most that was allocated so far',
  limit: 'What the device has, or what this process may use of it'
};

/** An element with a class and, maybe, a text. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  text = ''
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

/** A labelled bar with its number. */
class Bar {
  constructor(
    readonly field: string,
    label: string
  ) {
    this.node = element('div', `tl-row tl-${field}`);
    this.node.title = HINTS[label] ?? '';
    this._track = element('div', 'tl-track');
    this._track.setAttribute('role', 'meter');
    this._track.setAttribute('aria-label', label);
    this._track.setAttribute('aria-valuemin', '0');
    this._fill = element('div', 'tl-fill');
    this._track.append(this._fill);
    this._value = element('span', 'tl-value');
    this._value.dataset.field = field;
    this._share = element('b', 'tl-share');
    const text = element('span', 'tl-label', label);
    text.append(this._share);
    this.node.append(text, this._track, this._value);
  }

  readonly node: HTMLDivElement;

  /** Show `bytes`, and a fill of `part` out of `whole`; `share` says that part in a number. */
  update(bytes: number, part: number, whole: number, share = ''): void {
    const scale = whole > 0 ? Math.min(1, part / whole) : 0;
    this._value.textContent = formatBytes(bytes);
    this._value.dataset.bytes = String(bytes);
    this._fill.style.transform = `scaleX(${scale})`;
    this._share.textContent = share;
    this._track.setAttribute('aria-valuemax', String(whole));
    this._track.setAttribute('aria-valuenow', String(part));
    this._track.setAttribute('aria-valuetext', formatBytes(bytes));
  }

  private _share: HTMLElement;
  private _track: HTMLElement;
  private _fill: HTMLElement;
  private _value: HTMLElement;
}

/** A number of things: "1 block", "17 blocks". */
class Count {
  constructor(
    field: string,
    readonly noun: string
  ) {
    this.node = element('span', 'tl-count');
    this._value = element('b', '');
    this._value.dataset.field = field;
    this._noun = element('span', '');
    this.node.append(this._value, ' ', this._noun);
  }

  readonly node: HTMLElement;

  update(count: number): void {
    this._value.textContent = formatCount(count);
    this._noun.textContent = count === 1 ? this.noun : `${this.noun}s`;
  }

  private _value: HTMLElement;
  private _noun: HTMLElement;
}

/**
 * One device: its name and present number, the last minute, bars, and what it is made of.
 *
 * The nodes are made once and patched in place.
 */
export class DeviceCard {
  constructor(first: IDeviceMemory, alone: boolean) {
    const family = first.device.split(':')[0];
    this.node = element('section', `tl-device tl-kind-${first.kind}`);
    this.node.dataset.device = first.device;
    this.node.setAttribute('aria-label', `Memory of ${first.device}`);

    const head = element('header', 'tl-device-head');
    this._now = element('span', 'tl-now');
    head.append(
      element('span', 'tl-name', alone ? family : first.device),
      element('span', 'tl-what', WHAT[family] ?? ''),
      this._now
    );

    const figure = element('figure', 'tl-figure');
    this._top = element('span', 'tl-axis tl-axis-top');
    figure.append(
      this._spark.node,
      this._top,
      element('span', 'tl-axis tl-axis-left', '60 s ago'),
      element('span', 'tl-axis tl-axis-right', 'now')
    );

    const resident = first.kind === 'process';
    this._allocated = new Bar('allocated', resident ? 'resident' : 'allocated');
    this._reserved = first.reserved === null ? null : new Bar('reserved', 'reserved');
    this._peak = new Bar('peak', 'peak');
    this._limit = first.limit === null ? null : new Bar('limit', 'limit');
    const bars = element('div', 'tl-bars');
    for (const bar of [this._allocated, this._reserved, this._peak, this._limit]) {
      if (bar) {
        bars.append(bar.node);
      }
    }

    this.node.append(head, figure, bars);
    if (!resident) {
      const foot = element('footer', 'tl-device-foot');
      foot.append(this._segments.node, this._blocks.node);
      this.node.append(foot);
    }
  }

  readonly node: HTMLElement;

  update(memory: IDeviceMemory): void {
    const { allocated, reserved, peak, limit } = memory;
    const whole = Math.max(allocated, reserved ?? 0, peak);
    const used = reserved ?? allocated;
    this._now.textContent = formatBytes(allocated);
    this._allocated.update(allocated, allocated, whole);
    this._reserved?.update(reserved ?? 0, reserved ?? 0, whole);
    this._peak.update(peak, peak, whole);
    if (limit !== null) {
      this._limit?.update(limit, used, limit, limit > 0 ? formatShare(used, limit) : '');
    }
    this.node.classList.toggle('tl-tight', limit !== null && used > 0.9 * limit);
    this._segments.update(memory.segments ?? 0);
    this._blocks.update(memory.blocks ?? 0);
  }

  draw(samples: readonly ISample[], time: number): void {
    const top = this._spark.draw(samples, time);
    this._top.textContent = formatBytes(top);
  }

  private _spark = new Sparkline();
  private _now: HTMLElement;
  private _top: HTMLElement;
  private _allocated: Bar;
  private _reserved: Bar | null;
  private _peak: Bar;
  private _limit: Bar | null;
  private _segments = new Count('segments', 'segment');
  private _blocks = new Count('blocks', 'block');
}
