import { dark } from '../app/theme';
import { FONT } from './canvas';
import { scheme } from './palette';

// A stack as one image, with its labels: for a report or a chat.
export function picture(root: HTMLElement): HTMLCanvasElement {
  const ratio = window.devicePixelRatio || 1;
  const out = document.createElement('canvas');
  out.width = Math.round(root.clientWidth * ratio);
  out.height = Math.round(root.clientHeight * ratio);
  const g = out.getContext('2d')!;
  const colours = scheme(dark());
  g.scale(ratio, ratio);
  g.fillStyle = colours.background;
  g.fillRect(0, 0, root.clientWidth, root.clientHeight);
  for (const canvas of root.querySelectorAll<HTMLCanvasElement>('canvas.layer, canvas.axis')) {
    g.drawImage(canvas, canvas.offsetLeft, canvas.offsetTop, canvas.clientWidth, canvas.clientHeight);
  }
  g.fillStyle = colours.text;
  g.font = `bold ${FONT}`;
  g.textBaseline = 'top';
  for (const label of root.querySelectorAll<HTMLElement>('.layer-label')) {
    g.fillText(label.innerText.replace(/\s+/g, ' '), label.offsetLeft, label.offsetTop + 4, root.clientWidth);
  }
  return out;
}
