// A curve as small as a word. Its scale is its own; a gap is a value that is not finite.
import { fmt } from './format';

export function sparkPath(values: ArrayLike<number>, width: number, height: number): string {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    low = Math.min(low, values[i]);
    high = Math.max(high, values[i]);
  }
  if (low > high) return '';
  // Noise of a percent must not look like a mountain.
  const span = Math.max(high - low, Math.abs(high) * 0.1) || 1;
  const base = (low + high) / 2 - span / 2;
  let path = '';
  let pen = false;
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) {
      pen = false;
      continue;
    }
    const x = values.length > 1 ? (i / (values.length - 1)) * width : width / 2;
    const y = height - 1 - ((values[i] - base) / span) * (height - 2);
    path += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  }
  return path;
}

export function Spark({ values, label, bad = false }: { values: number[]; label: string; bad?: boolean }) {
  const path = sparkPath(values, 108, 20);
  if (!path) return <span class="spark" />;
  const finite = values.filter(Number.isFinite);
  const words = `${label}: ${fmt.seconds(Math.min(...finite))} to ${fmt.seconds(Math.max(...finite))}`;
  return (
    <svg class={bad ? 'spark bad' : 'spark'} viewBox="0 0 108 20" role="img" aria-label={words}>
      <path d={path} />
    </svg>
  );
}
