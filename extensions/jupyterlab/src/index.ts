import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel } from '@jupyterlab/services';

import { KernelMemory } from './kernelMemory';
import { MemoryPanel } from './panel';

const SHOW = 'torchlab:show-memory';

/** The memory of every notebook's kernel, watched from its start: a switch loses no history. */
class Memories {
  /** The memory of this kernel, one for all connections to it. */
  of(kernel: Kernel.IKernelConnection): KernelMemory {
    let memory = this._memories.get(kernel.id);
    if (!memory || memory.kernel.isDisposed) {
      memory?.dispose();
      memory = new KernelMemory(kernel);
      this._memories.set(kernel.id, memory);
      const made = memory;
      kernel.disposed.connect(() => {
        made.dispose();
        if (this._memories.get(kernel.id) === made) {
          this._memories.delete(kernel.id);
        }
      });
    }
    return memory;
  }

  private _memories = new Map<string, KernelMemory>();
}

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null
): void {
  const memories = new Memories();
  const panel = new MemoryPanel();

  const showCurrent = () => {
    const notebook = tracker.currentWidget;
    const kernel = notebook?.sessionContext.session?.kernel;
    panel.showKernel(
      kernel ? memories.of(kernel) : null,
      notebook ? notebook.title.label : null
    );
  };
  const watch = (_: unknown, notebook: NotebookPanel) => {
    const begin = () => {
      const kernel = notebook.sessionContext.session?.kernel;
      if (kernel) {
        memories.of(kernel);
      }
      showCurrent();
    };
    notebook.sessionContext.kernelChanged.connect(begin);
    notebook.title.changed.connect(showCurrent);
    notebook.disposed.connect(showCurrent);
    begin();
  };
  tracker.widgetAdded.connect(watch);
  tracker.forEach(notebook => watch(tracker, notebook));
  tracker.currentChanged.connect(showCurrent);

  app.shell.add(panel, 'right', { rank: 900, type: 'torchlab' });
  restorer?.add(panel, panel.id);
  app.commands.addCommand(SHOW, {
    label: 'Show Live Memory',
    caption: 'Show what the active notebook’s devices hold',
    execute: () => app.shell.activateById(panel.id)
  });
  palette?.addItem({ command: SHOW, category: 'torchlab' });
  showCurrent();
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'torchlab-jupyterlab:memory',
  description: 'Live memory of the active notebook’s kernel in the sidebar.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILayoutRestorer],
  activate
};

export default plugin;
