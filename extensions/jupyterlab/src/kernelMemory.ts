import { Kernel, KernelMessage } from '@jupyterlab/services';
import { JSONObject } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

/** The comm that `%load_ext torchlab.notebook` opens in the kernel. */
export const TARGET = 'torchlab.memory';
/** The layout of the messages this page understands. */
const PROTOCOL = 1;
/** Seconds of history that the curves show. */
export const WINDOW = 60;

/** What the kernel says of one device; bytes, null where it has no such number. */
export interface IDeviceMemory {
  device: string;
  kind: 'process' | 'allocator';
  allocated: number;
  peak: number;
  reserved: number | null;
  limit: number | null;
  segments: number | null;
  blocks: number | null;
  /** The most that was allocated since the message before. */
  high: number;
}

/** One point of a curve: seconds on the page's own clock, bytes. */
export interface ISample {
  time: number;
  allocated: number;
  high: number;
}

/**
 * - absent: the kernel has not loaded torchlab.notebook
 * - live: it sends
 * - restarted: it did, and then the kernel was restarted
 * - outdated: it speaks a protocol that this page does not know
 */
export type FeedState = 'absent' | 'live' | 'restarted' | 'outdated';

/** Seconds on the page's clock. The kernel may run on a machine whose clock differs. */
export function now(): number {
  return performance.now() / 1000;
}

/**
 * The memory of one kernel, from the messages that pass on its connection.
 *
 * It reads the kernel's broadcast and not a comm object of its own: so it also works on a second
 * connection to the same kernel (which handles no comms), and a page that was reloaded while a cell
 * is busy picks the feed up in the middle.
 */
export class KernelMemory implements IDisposable {
  constructor(readonly kernel: Kernel.IKernelConnection) {
    // A kernel whose comm finds no target gets it closed; what it sends is read below.
    kernel.registerCommTarget(TARGET, () => undefined);
    kernel.iopubMessage.connect(this._onMessage, this);
    kernel.statusChanged.connect(this._onStatus, this);
    void this._findFeed();
  }

  get state(): FeedState {
    return this._state;
  }

  get devices(): readonly IDeviceMemory[] {
    return this._devices;
  }

  /** Emitted after every message and every change of state. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The device's samples of the last minute, oldest first, with one before it for the left edge. */
  history(device: string): readonly ISample[] {
    return this._history.get(device) ?? [];
  }

  /** Run `%load_ext` in the kernel, unseen. Resolves to an error's text, or null. */
  async load(): Promise<string | null> {
    const future = this.kernel.requestExecute({
      code: '%reload_ext torchlab.notebook',
      silent: true,
      store_history: false,
      stop_on_error: false
    });
    const reply = await future.done;
    if (reply.content.status === 'error') {
      return `${reply.content.ename}: ${reply.content.evalue}`;
    }
    return reply.content.status === 'ok' ? null : 'The kernel did not run it.';
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this.kernel.iopubMessage.disconnect(this._onMessage, this);
    this.kernel.statusChanged.disconnect(this._onStatus, this);
    Signal.clearData(this);
  }

  /** A feed that was opened before this page: ask it to say its state. */
  private async _findFeed(): Promise<void> {
    try {
      await this.kernel.info;
      const reply = await this.kernel.requestCommInfo({ target_name: TARGET });
      const ids =
        reply.content.status === 'ok' ? Object.keys(reply.content.comms) : [];
      if (this._isDisposed || this._commId !== null || !ids.length) {
        return;
      }
      this._commId = ids[0];
      if (this.kernel.handleComms && !this.kernel.hasComm(ids[0])) {
        this.kernel.createComm(TARGET, ids[0]).send({ request: 'state' });
      }
    } catch (error) {
      if (!this._isDisposed && !this.kernel.isDisposed) {
        console.warn('torchlab: the kernel did not list its comms', error);
      }
    }
  }

  private _onMessage(
    _: Kernel.IKernelConnection,
    message: KernelMessage.IIOPubMessage
  ): void {
    if (KernelMessage.isCommOpenMsg(message)) {
      if (message.content.target_name === TARGET) {
        this._commId = message.content.comm_id;
        this._devices = [];
        this._history.clear();
      }
    } else if (KernelMessage.isCommMsgMsg(message)) {
      const data = message.content.data as unknown as JSONObject;
      const ours =
        this._commId === null
          ? data.feed === TARGET
          : message.content.comm_id === this._commId;
      if (ours) {
        this._commId = message.content.comm_id;
        this._take(data);
      }
    } else if (KernelMessage.isCommCloseMsg(message)) {
      if (message.content.comm_id === this._commId) {
        this._forget('absent');
      }
    }
  }

  private _onStatus(): void {
    const status = this.kernel.status;
    if (this._commId !== null && GONE.has(status)) {
      this._forget('restarted');
    }
  }

  private _take(data: JSONObject): void {
    if (data.protocol !== PROTOCOL) {
      this._state = 'outdated';
      this._changed.emit();
      return;
    }
    this._state = 'live';
    this._devices = data.devices as unknown as IDeviceMemory[];
    const time = now();
    for (const { device, allocated, high } of this._devices) {
      let samples = this._history.get(device);
      if (!samples) {
        this._history.set(device, (samples = []));
      }
      samples.push({ time, allocated, high });
      while (samples.length > 2 && samples[1].time < time - WINDOW) {
        samples.shift();
      }
    }
    this._changed.emit();
  }

  private _forget(state: FeedState): void {
    this._commId = null;
    this._state = state;
    this._devices = [];
    this._history.clear();
    this._changed.emit();
  }

  private _commId: string | null = null;
  private _state: FeedState = 'absent';
  private _devices: IDeviceMemory[] = [];
  private _history = new Map<string, ISample[]>();
  private _isDisposed = false;
  private _changed = new Signal<this, void>(this);
}

const GONE = new Set<Kernel.Status>([
  'restarting',
  'autorestarting',
  'terminating',
  'dead'
]);
