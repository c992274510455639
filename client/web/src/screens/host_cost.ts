// What each host cost the job: at every step all tasks wait for the slowest, so the host whose own
// work took longest is charged with what it took above the median of the hosts.
import type { MatrixData } from '../chart/types';

export interface HostCost {
  host: string;
  seconds: number;
  slowest: number; // Share of the columns in which it was the slowest.
}

// `m` has a row for each host and the mean of its own work in each column, in seconds, by steps; a
// column stands for as many steps as it is wide. Noise counts too: with equal hosts, all have a
// little.
export function hostCosts(m: MatrixData): HostCost[] {
  const costs = m.rows.map((row): HostCost => ({ host: row.host, seconds: 0, slowest: 0 }));
  let columns = 0;
  for (let c = 0; c < m.columns; c++) {
    let worst = -1;
    for (let r = 0; r < m.rows.length; r++) {
      const v = m.values[r * m.columns + c];
      if (Number.isFinite(v) && (worst < 0 || v > m.values[worst * m.columns + c])) worst = r;
    }
    if (worst < 0 || !Number.isFinite(m.median[c])) continue;
    columns++;
    costs[worst].slowest++;
    costs[worst].seconds += Math.max(0, m.values[worst * m.columns + c] - m.median[c]) * m.width;
  }
  for (const cost of costs) cost.slowest /= Math.max(1, columns);
  return costs.sort((a, b) => b.seconds - a.seconds);
}
