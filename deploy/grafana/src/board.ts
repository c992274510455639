// The common parts of the dashboards: variables, links to each other, time.
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import { place, type Section } from './grid';
import { kDatasource } from './query';

export const kUids = {
  fleet: 'tacho-fleet',
  job: 'tacho-job',
  host: 'tacho-host',
  collector: 'tacho-collector',
  cluster: 'tacho-cluster',
} as const;

export type Name = keyof typeof kUids;

const kTitles: Record<Name, string> = {
  fleet: 'Fleet',
  job: 'One job',
  host: 'One host',
  collector: 'Collector',
  cluster: 'Cluster and bucket',
};

// The address of a dashboard with the time and data source shown now and the variables given.
// `values` are texts that Grafana replaces, such as ${__data.fields.job}.
export function urlOf(name: Name, values: Record<string, string> = {}): string {
  const variables = { datasource: '${datasource}', ...values };
  const query = Object.entries(variables).map(([key, value]) => `var-${key}=${value}`);
  return `/d/${kUids[name]}?${query.join('&')}&\${__url_time_range}`;
}

// The address of a screen of the collector's page, which opens in a tab of its own. `screen` is what
// docs/page.md has behind /ui/, with texts that Grafana replaces. Of several collectors it is one.
export function pageUrlOf(screen: string): string {
  return `\${page:raw}#/${screen}`;
}

export function sourceVariable(): dashboard.DatasourceVariableBuilder {
  return new dashboard.DatasourceVariableBuilder('datasource')
    .label('Prometheus')
    .description('The Prometheus that scrapes the collectors.')
    .type('prometheus');
}

function pageVariable(): dashboard.QueryVariableBuilder {
  return queryVariable({
    name: 'page',
    label: 'Page',
    description: 'The page of a collector, for links.',
    query: 'label_values(tacho_page_info, url)',
  }).hide(dashboard.VariableHide.HideVariable);
}

export interface Choice {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly query: string; // label_values(…)
  readonly many?: boolean; // Several at once, and "All", which is the default.
  readonly sort?: dashboard.VariableSort;
}

export function queryVariable(choice: Choice): dashboard.QueryVariableBuilder {
  const variable = new dashboard.QueryVariableBuilder(choice.name)
    .label(choice.label)
    .description(choice.description)
    .datasource(kDatasource)
    .query({ qryType: 1, query: choice.query, refId: `variable-${choice.name}` })
    .definition(choice.query)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(choice.sort ?? dashboard.VariableSort.NaturalAsc);
  if (choice.many) {
    variable.multi(true).includeAll(true).allValue('.*');
    variable.current({ selected: true, text: ['All'], value: ['$__all'] });
  }
  return variable;
}

// A line down every graph at each time that `expr` has as its value, in milliseconds.
export interface Marks {
  readonly name: string;
  readonly expr: string;
  readonly title: string;
  readonly color: string;
}

function annotation(marks: Marks): dashboard.AnnotationQueryBuilder {
  return new dashboard.AnnotationQueryBuilder()
    .name(marks.name)
    .datasource(kDatasource)
    .enable(true)
    .iconColor(marks.color)
    .expr(marks.expr)
    .titleFormat(marks.title)
    .useValueForTime(true);
}

export interface Board {
  readonly name: Name;
  readonly description: string;
  readonly variables: readonly Choice[];
  readonly marks?: readonly Marks[];
  readonly sections: readonly Section[];
  readonly screen: string; // What the collector's page has of it: see pageUrlOf().
}

export function build(board: Board): dashboard.Dashboard {
  const builder = new dashboard.DashboardBuilder(`Tachograph: ${kTitles[board.name]}`)
    .uid(kUids[board.name])
    .description(board.description)
    .tags(['tachograph'])
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .time({ from: 'now-3h', to: 'now' })
    .refresh('30s')
    .timezone('browser')
    .editable()
    .withVariable(sourceVariable())
    .withVariable(pageVariable());
  for (const choice of board.variables) builder.withVariable(queryVariable(choice));
  for (const marks of board.marks ?? []) builder.annotation(annotation(marks));
  for (const name of Object.keys(kUids) as Name[]) {
    if (name !== board.name) builder.link(linkTo(name));
  }
  builder.link(linkToPage(board.screen));
  place(builder, board.sections);
  return builder.build();
}

// With the values of all variables: each dashboard takes those that it has.
function linkTo(name: Name): dashboard.DashboardLinkBuilder {
  return new dashboard.DashboardLinkBuilder(kTitles[name])
    .type(dashboard.DashboardLinkType.Link)
    .url(`/d/${kUids[name]}`)
    .icon('dashboard')
    .tooltip(`Tachograph: ${kTitles[name]}`)
    .includeVars(true)
    .keepTime(true);
}

function linkToPage(screen: string): dashboard.DashboardLinkBuilder {
  return new dashboard.DashboardLinkBuilder('Page')
    .type(dashboard.DashboardLinkType.Link)
    .url(pageUrlOf(screen))
    .icon('external link')
    .tooltip('The same on the page of the collector')
    .targetBlank(true);
}
