// PromQL that the dashboards share, and how a query becomes a target of a panel.
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import type { DataSourceRef } from '@grafana/grafana-foundation-sdk/common';

// Every panel asks the data source that the variable of this name chooses.
export const kDatasource: DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

// The job for series of hosts and chips that belong to no training job.
export const kHostsJob = 'hosts';

export interface Query {
  readonly expr: string;
  readonly legend?: string; // As Grafana's legendFormat: {{label}} is a label's value.
}

export type Kind = 'range' | 'instant' | 'table';

// A, B, C, …: Grafana's names for the queries of one panel; overrides and tables refer to them.
export function refId(index: number): string {
  if (index < 0 || index > 25) throw new Error(`a panel has 26 queries at most, not ${index + 1}`);
  return String.fromCharCode('A'.charCodeAt(0) + index);
}

export function target(query: Query, index: number, kind: Kind): DataqueryBuilder {
  const builder = new DataqueryBuilder()
    .refId(refId(index))
    .datasource(kDatasource)
    .expr(query.expr)
    .legendFormat(query.legend ?? '__auto');
  switch (kind) {
    case 'range':
      return builder.range();
    case 'instant':
      return builder.instant();
    case 'table':
      return builder.instant().format(PromQueryFormat.Table);
  }
}

export type Stat = 'sum' | 'avg' | 'min' | 'max' | 'count' | 'p50' | 'p90' | 'p99' | 'non_finite';

// One statistic of a metric over the tasks or chips of the chosen job, all of them: host="" leaves
// out what a rule has grouped by host. The labels of the target that was scraped are dropped, so
// that a collector that moved to another address is no second line.
export function ofJob(metric: string, stat: Stat): string {
  return ofAttempt(`max by (job) (tacho_job_${metric}{job="$job",host="",stat="${stat}"})`);
}

// `expr`, which has the label job, only while one of the chosen attempts was the newest.
// "All" is `.*` and matches a job of which nothing but tacho_job_attempt is known.
export function ofAttempt(expr: string): string {
  const attempts = '{__name__=~"tacho_job_attempt|tacho_job_info",job="$job",attempt=~"$attempt"}';
  return `${expr} and on (job) ${attempts}`;
}

// One statistic of a metric of hosts or their chips, for each of the chosen hosts.
export function ofHosts(metric: string, stat: Stat): string {
  return `tacho_job_${metric}{job="${kHostsJob}",host!="",host=~"$host",stat="${stat}"}`;
}

// The same as a line for each host.
export function byHost(metric: string, stat: Stat): string {
  return `max by (host) (${ofHosts(metric, stat)})`;
}

// Only of hosts that tasks of the chosen job ran on last. `expr` has the label host.
export function onHostsOfJob(expr: string): string {
  return `${expr} and on (host) tacho_job_host_info{job="$job"}`;
}

export function rate(counter: string, matchers = ''): string {
  return `rate(${counter}${matchers && `{${matchers}}`}[$__rate_interval])`;
}

// A quantile of one of the collector's own histograms.
export function quantile(q: number, histogram: string, matchers: string, by: string[] = [])
  : string {
  const labels = ['le', ...by].join(', ');
  const buckets = rate(`${histogram}_bucket`, matchers);
  return `histogram_quantile(${q}, sum by (${labels}) (${buckets}))`;
}
