// Describes the dashboards in words, for docs/grafana.md.
import type * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dataquery } from '@grafana/grafana-foundation-sdk/prometheus';

type Panel = dashboard.Panel | dashboard.RowPanel;

const kKinds: Record<string, string> = {
  stat: 'number',
  timeseries: 'graph',
  table: 'table',
  'state-timeline': 'states over time',
  'status-history': 'heat map over time',
};

export function describe(boards: readonly dashboard.Dashboard[]): string {
  return boards.map(screen).join('\n');
}

function screen(board: dashboard.Dashboard): string {
  const variables = (board.templating.list ?? [])
    .filter((variable) => variable.definition !== undefined)
    .map((variable) => `\`${variable.name}\` (\`${variable.definition}\`)`);
  const parts = [
    `## ${board.title ?? ''}`,
    board.description ?? '',
    `Address \`/d/${board.uid ?? ''}\`. Variables: ${variables.join(', ')}.`,
    ...(board.panels ?? []).map(part),
  ];
  return `${parts.join('\n\n')}\n`;
}

function part(panel: Panel): string {
  if (isRow(panel)) return `### ${panel.title ?? ''}`;
  const kind = kKinds[panel.type] ?? panel.type;
  const targets = (panel.targets ?? []) as Dataquery[];
  const queries = targets.map((target) => target.expr).join('\n');
  const said = `**${panel.title ?? ''}** (${kind}). ${panel.description ?? ''}`;
  return `${said}\n\n\`\`\`\n${queries}\n\`\`\``;
}

function isRow(panel: Panel): panel is dashboard.RowPanel {
  return panel.type === 'row';
}
