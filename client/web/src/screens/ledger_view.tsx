// The ledger as a bar and as a table.
import { scheme } from '../chart/palette';
import { useDark } from '../chart/legend';
import { fmt } from '../parts/format';
import { total, type BucketSum } from './ledger';
import './rows.css';
import { bucketTitle } from './spans';

const WIDTH = 1000;

export function Shares({ sums, label }: { sums: BucketSum[]; label: string }) {
  const { kinds } = scheme(useDark());
  const all = total(sums);
  let at = 0;
  const words = sums.map((s) => `${bucketTitle(s.bucket)} ${fmt.percent(s.seconds / all)}`).join(', ');
  return (
    <div class="share">
      <svg viewBox={`0 0 ${WIDTH} 22`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${words || 'nothing'}`}>
        {sums.map((s) => {
          const x = at;
          at += (s.seconds / all) * WIDTH;
          return <rect key={s.bucket} x={x} y={0} width={Math.max(1, at - x - 1)} height={22} fill={kinds[s.bucket] ?? kinds.other}><title>{bucketTitle(s.bucket)}</title></rect>;
        })}
      </svg>
    </div>
  );
}

export function Colour({ bucket }: { bucket: string }) {
  const { kinds } = scheme(useDark());
  return <svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" fill={kinds[bucket] ?? kinds.other} /></svg>;
}

// "productive 61 %, stalled 31 %": the largest first.
export function sentence(sums: BucketSum[]): string {
  const all = total(sums);
  return [...sums].sort((a, b) => b.seconds - a.seconds).filter((s) => s.seconds / all >= 0.001)
    .map((s) => `${bucketTitle(s.bucket)} ${fmt.percent(s.seconds / all)}`).join(', ');
}
