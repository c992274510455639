// Panels about collectors, each chosen by the variable `instance`.
import type { Choice } from './board';
import { graph, type GraphSpec, kPlain, number, type PanelBuilder, type Spec } from './panel';
import { type Query, rate } from './query';

export const kHere = 'instance=~"$instance"';

type Figure = Pick<Spec, 'title' | 'description' | 'unit'> & Partial<Spec> & {
  readonly expr: string; readonly text?: boolean; readonly legend?: string;
};

export function figure(spec: Figure): PanelBuilder {
  const queries = [{ expr: spec.expr, legend: spec.legend ?? '{{instance}}' }];
  return number({ thresholds: kPlain, queries, ...spec });
}

type Lines = Pick<Spec, 'title' | 'description' | 'unit' | 'queries'> & Partial<GraphSpec> & {
  readonly signed?: boolean; // Values may be below 0.
};

export function lines({ signed, ...spec }: Lines): PanelBuilder {
  return graph({ thresholds: kPlain, ...(signed ? {} : { min: 0 }), ...spec });
}

export function per(counter: string, label: string): Query {
  return { expr: `sum by (${label}) (${rate(counter, kHere)})`, legend: `{{${label}}}` };
}

export function each(metric: string, legend: string): Query {
  return { expr: `sum(${metric}{${kHere}})`, legend };
}

export function speed(counter: string, legend: string): Query {
  return { expr: `sum(${rate(counter, kHere)})`, legend };
}

export const kInstance: Choice = {
  name: 'instance',
  label: 'Collector',
  description: 'Collectors to show, by the address that Prometheus scrapes.',
  query: 'label_values(tacho_build_info, instance)',
  many: true,
};
