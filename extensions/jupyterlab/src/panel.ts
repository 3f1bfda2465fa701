import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { DeviceCard, element } from './deviceCard';
import { EmptyReason, EmptyState } from './emptyState';
import { torchlabIcon } from './icon';
import { KernelMemory, now } from './kernelMemory';

/** Milliseconds between two steps of the curves while nothing happens. */
const TICK = 250;

/** The sidebar's panel: the memory of one kernel, or why there is none to show. */
export class MemoryPanel extends Widget {
  constructor() {
    super();
    this.id = 'torchlab-memory';
    this.addClass('tl-panel');
    this.title.icon = torchlabIcon;
    this.title.caption = 'torchlab: live memory';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'torchlab: live memory');

    const head = element('div', 'tl-head');
    const titles = element('div', 'tl-titles');
    this._where = element('span', 'tl-where');
    titles.append(element('span', 'tl-title', 'torchlab'), this._where);
    this._badge = element('span', 'tl-badge');
    const logo = element('span', 'tl-logo');
    torchlabIcon.element({ container: logo });
    head.append(logo, titles, this._badge);
    this._body = element('div', 'tl-body');
    this.node.append(head, this._body);
    this._render();
  }

  /** Show another kernel; `where` names the notebook. Null: there is none. */
  showKernel(memory: KernelMemory | null, where: string | null): void {
    if (this._memory !== memory) {
      this._memory?.changed.disconnect(this._schedule, this);
      this._memory?.kernel.statusChanged.disconnect(this._schedule, this);
      this._memory = memory;
      memory?.changed.connect(this._schedule, this);
      memory?.kernel.statusChanged.connect(this._schedule, this);
      this._clearCards();
    }
    this._where.textContent = where ?? 'live memory';
    this._where.title = where ?? '';
    this._hasNotebook = where !== null;
    this._schedule();
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._startClock();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._startClock();
  }

  protected onBeforeHide(message: Message): void {
    this._stopClock();
    super.onBeforeHide(message);
  }

  protected onBeforeDetach(message: Message): void {
    this._stopClock();
    super.onBeforeDetach(message);
  }

  private _startClock(): void {
    if (this.isVisible && this._clock === null) {
      this._clock = window.setInterval(() => this._schedule(), TICK);
      this._schedule();
    }
  }

  private _stopClock(): void {
    if (this._clock !== null) {
      window.clearInterval(this._clock);
      this._clock = null;
    }
  }

  /** Draw once in the next frame, however many messages arrive until then; hidden, not at all. */
  private _schedule(): void {
    if (this._frame === null && this.isVisible) {
      this._frame = requestAnimationFrame(() => {
        this._frame = null;
        if (!this.isDisposed) {
          this._render();
        }
      });
    }
  }

  private _render(): void {
    const memory = this._memory;
    const live = memory !== null && memory.state === 'live';
    this._renderBadge(live);
    if (!live) {
      this._clearCards();
      const reason: EmptyReason = memory
        ? (memory.state as 'absent' | 'restarted' | 'outdated')
        : this._hasNotebook
          ? 'no-kernel'
          : 'no-notebook';
      this._empty.show(reason, memory);
      if (!this._empty.node.isConnected || this._empty.node.parentNode !== this._body) {
        this._body.replaceChildren(this._empty.node);
      }
      return;
    }
    this._empty.node.remove();
    const time = now();
    const seen = new Set<string>();
    for (const device of memory.devices) {
      let card = this._cards.get(device.device);
      if (!card) {
        const family = device.device.split(':')[0];
        const siblings = memory.devices.filter(d => d.device.split(':')[0] === family);
        card = new DeviceCard(device, siblings.length === 1);
        this._cards.set(device.device, card);
        this._body.append(card.node);
      }
      seen.add(device.device);
      card.update(device);
      card.draw(memory.history(device.device), time);
    }
    for (const [name, card] of this._cards) {
      if (!seen.has(name)) {
        card.node.remove();
        this._cards.delete(name);
      }
    }
  }

  private _renderBadge(live: boolean): void {
    const status = this._memory?.kernel.status ?? 'unknown';
    const text = live ? (status === 'busy' ? 'busy' : 'live') : '';
    this._badge.textContent = text;
    this._badge.dataset.state = text;
    this._badge.hidden = !live;
    this._badge.title = live ? `The kernel is ${status}; the numbers are live` : '';
  }

  private _clearCards(): void {
    for (const card of this._cards.values()) {
      card.node.remove();
    }
    this._cards.clear();
  }

  private _memory: KernelMemory | null = null;
  private _hasNotebook = false;
  private _cards = new Map<string, DeviceCard>();
  private _empty = new EmptyState();
  private _body: HTMLElement;
  private _where: HTMLElement;
  private _badge: HTMLElement;
  private _clock: number | null = null;
  private _frame: number | null = null;
}
