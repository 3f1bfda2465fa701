import { LabIcon } from '@jupyterlab/ui-components';

/** A flame over four blocks of memory, one of them free. */
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M12.9 1c.4 2.6-.5 4-1.8 5.5C9.5 8.3 7.6 10 7.6 12.6c0 1.7.8 3 2 3.8-.3-1.7.2-3 1.2-4 .9-.9 1.5-1.8 1.5-3.2 1.7 1.1 2.9 3.1 2.4 5.2-.1.7-.4 1.4-.8 1.9 1.5-.8 2.5-2.3 2.5-4.3C16.4 7.9 13.5 6.1 12.9 1z"/>
    <path d="M3 18h4v4.5H3zm4.7 0h4v4.5h-4zm4.7 0h4v4.5h-4z"/>
    <path d="M17.1 18h4v4.5h-4z" opacity=".4"/>
  </g>
</svg>`;

export const torchlabIcon = new LabIcon({
  name: 'torchlab:memory',
  svgstr: SVG
});
