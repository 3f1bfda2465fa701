import { element } from './deviceCard';
import { KernelMemory } from './kernelMemory';

const COMMAND = '%load_ext torchlab.notebook';

export type EmptyReason =
  | 'no-notebook'
  | 'no-kernel'
  | 'absent'
  | 'restarted'
  | 'outdated';

const TITLES: Record<EmptyReason, string> = {
  'no-notebook': 'No notebook is open',
  'no-kernel': 'No kernel yet',
  absent: 'Not watching yet',
  restarted: 'Kernel restarted',
  outdated: 'This page is out of date'
};

/** What the panel shows when there is nothing to draw: why, and what to do about it. */
export class EmptyState {
  constructor() {
    this.node = element('div', 'tl-empty');
    this._title = element('p', 'tl-empty-title');
    this._text = element('p', 'tl-empty-text');
    this._code = element('code', 'tl-code', COMMAND);
    this._button = element('button', 'tl-button', 'Load it in this kernel');
    this._button.type = 'button';
    this._button.addEventListener('click', () => void this._load());
    this._problem = element('p', 'tl-problem');
    this._problem.setAttribute('role', 'alert');
    const picture = element('div', 'tl-empty-picture');
    picture.setAttribute('aria-hidden', 'true');
    for (let i = 0; i < 10; i++) {
      picture.append(element('span', 'tl-empty-block'));
    }
    this.node.append(
      picture,
      this._title,
      this._text,
      this._code,
      this._button,
      this._problem
    );
  }

  readonly node: HTMLElement;

  show(reason: EmptyReason, memory: KernelMemory | null): void {
    if (memory !== this._memory) {
      this._memory = memory;
      this._problem.textContent = '';
      this._idle();
    }
    if (reason === this._reason) {
      return;
    }
    this._reason = reason;
    this.node.dataset.reason = reason;
    this._problem.textContent = '';
    this._title.textContent = TITLES[reason];
    const loadable = reason === 'absent' || reason === 'restarted';
    this._text.textContent =
      reason === 'outdated'
        ? 'The kernel’s torchlab is newer than this page. Reload it; if that does not help, update torchlab where JupyterLab runs.'
        : loadable
          ? 'To see its memory live, run this in a cell:'
          : 'To see a notebook’s memory live, open it and run this in a cell:';
    this._code.hidden = reason === 'outdated';
    this._button.hidden = !loadable;
  }

  private _idle(): void {
    this._button.disabled = false;
    this._button.textContent = 'Load it in this kernel';
  }

  private async _load(): Promise<void> {
    const memory = this._memory;
    if (!memory) {
      return;
    }
    this._problem.textContent = '';
    this._button.disabled = true;
    this._button.textContent =
      memory.kernel.status === 'busy' ? 'Waiting for the running cell…' : 'Loading…';
    let problem: string | null;
    try {
      problem = await memory.load();
    } catch (error) {
      problem = String(error); // the kernel was restarted or the connection closed meanwhile
    }
    if (memory === this._memory) {
      this._idle();
      this._problem.textContent = problem ?? '';
    }
  }

  private _memory: KernelMemory | null = null;
  private _reason: EmptyReason | null = null;
  private _title: HTMLElement;
  private _text: HTMLElement;
  private _code: HTMLElement;
  private _button: HTMLButtonElement;
  private _problem: HTMLElement;
}
