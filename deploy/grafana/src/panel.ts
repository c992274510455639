// Panels. The types demand a description, a unit and thresholds for each.
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import * as common from '@grafana/grafana-foundation-sdk/common';
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as stateTimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import * as statusHistory from '@grafana/grafana-foundation-sdk/statushistory';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeSeries from '@grafana/grafana-foundation-sdk/timeseries';
import { kDatasource, type Kind, type Query, refId, target } from './query';

export type PanelBuilder = Builder<dashboard.Panel>;
export type Thresholds = readonly dashboard.Threshold[];

// For values that are neither good nor bad.
export const kPlain: Thresholds = [{ value: null, color: 'blue' }];

// Good below `warn`, bad from `bad` on; or the other way round if `bad` is the lower.
export function limits(warn: number, bad: number): Thresholds {
  return warn <= bad
    ? [step(null, 'green'), step(warn, 'orange'), step(bad, 'red')]
    : [step(null, 'red'), step(bad, 'orange'), step(warn, 'green')];
}

// Anything below is bad.
export function atLeast(value: number): Thresholds {
  return [step(null, 'red'), step(value, 'green')];
}

// Anything at all is bad.
export const kNone: Thresholds = [step(null, 'green'), step(1, 'red')];

function step(value: number | null, color: string): dashboard.Threshold {
  return { value, color };
}

export interface Spec {
  readonly title: string;
  readonly description: string;
  readonly unit: string; // One of the SDK's units.
  readonly thresholds: Thresholds;
  readonly queries: readonly Query[];
  readonly decimals?: number;
  readonly min?: number;
  readonly max?: number;
  readonly noValue?: string;
}

interface Fields {
  title(title: string): this;
  description(description: string): this;
  datasource(datasource: common.DataSourceRef): this;
  unit(unit: string): this;
  thresholds(thresholds: Builder<dashboard.ThresholdsConfig>): this;
  targets(targets: Builder<Dataquery>[]): this;
  decimals(decimals: number): this;
  min(min: number): this;
  max(max: number): this;
  noValue(text: string): this;
}

function fill<B extends Fields>(panel: B, spec: Spec, kind: Kind): B {
  const thresholds = new dashboard.ThresholdsConfigBuilder()
    .mode(dashboard.ThresholdsMode.Absolute)
    .steps([...spec.thresholds]);
  panel
    .title(spec.title)
    .description(spec.description)
    .datasource(kDatasource)
    .unit(spec.unit)
    .thresholds(thresholds)
    .targets(spec.queries.map((query, index) => target(query, index, kind)));
  if (spec.decimals !== undefined) panel.decimals(spec.decimals);
  if (spec.min !== undefined) panel.min(spec.min);
  if (spec.max !== undefined) panel.max(spec.max);
  if (spec.noValue !== undefined) panel.noValue(spec.noValue);
  return panel;
}

export function color(mode: dashboard.FieldColorModeId): dashboard.FieldColorBuilder {
  return new dashboard.FieldColorBuilder().mode(mode);
}

// One number, coloured by its thresholds, with its curve behind it. `text` shows the series'
// legend instead of its value.
export function number(spec: Spec & { readonly text?: boolean }): PanelBuilder {
  const reduce = new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false);
  return fill(new stat.PanelBuilder(), spec, spec.text ? 'instant' : 'range')
    .colorScheme(color(dashboard.FieldColorModeId.Thresholds))
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(spec.text ? common.BigValueGraphMode.None : common.BigValueGraphMode.Area)
    .textMode(spec.text ? common.BigValueTextMode.Name : common.BigValueTextMode.Auto)
    .reduceOptions(reduce);
}

// A second axis, on the right: of the series whose names match, with their own unit.
export interface RightAxis {
  readonly pattern: string;
  readonly unit: string;
  readonly label: string;
}

export interface GraphSpec extends Spec {
  readonly stacked?: boolean;
  readonly logarithmic?: boolean;
  readonly right?: readonly RightAxis[];
  // Draws the thresholds into the graph. For limits that mean something as a line.
  readonly showThresholds?: boolean;
}

export function graph(spec: GraphSpec): PanelBuilder {
  const panel = fill(new timeSeries.PanelBuilder(), spec, 'range')
    .colorScheme(color(dashboard.FieldColorModeId.PaletteClassic))
    .lineWidth(1)
    .fillOpacity(spec.stacked ? 40 : 8)
    .showPoints(common.VisibilityMode.Never)
    .legend(legendBelow(['lastNotNull', 'max']))
    .tooltip(tooltipOfAll());
  if (spec.stacked) {
    panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal));
  }
  if (spec.logarithmic) {
    const log = common.ScaleDistribution.Log;
    panel.scaleDistribution(new common.ScaleDistributionConfigBuilder().type(log).log(10));
  }
  if (spec.showThresholds) {
    const style = new common.GraphThresholdsStyleConfigBuilder();
    panel.thresholdsStyle(style.mode(common.GraphThresholdsStyleMode.Dashed));
  }
  for (const axis of spec.right ?? []) {
    panel.overrideByRegexp(axis.pattern, [
      { id: 'unit', value: axis.unit },
      { id: 'custom.axisPlacement', value: common.AxisPlacement.Right },
      { id: 'custom.axisLabel', value: axis.label },
    ]);
  }
  return panel;
}

function legendBelow(calcs: string[]): common.VizLegendOptionsBuilder {
  return new common.VizLegendOptionsBuilder()
    .displayMode(common.LegendDisplayMode.List)
    .placement(common.LegendPlacement.Bottom)
    .showLegend(true)
    .calcs(calcs);
}

function tooltipOfAll(): common.VizTooltipOptionsBuilder {
  return new common.VizTooltipOptionsBuilder()
    .mode(common.TooltipDisplayMode.Multi)
    .sort(common.SortOrder.Descending);
}

// One line of coloured cells per series. `columns` is how many cells a line has.
export function heatMap(spec: Spec & { readonly columns?: number }): PanelBuilder {
  return fill(new statusHistory.PanelBuilder(), spec, 'range')
    .colorScheme(color(dashboard.FieldColorModeId.ContinuousBlYlRd))
    .maxDataPoints(spec.columns ?? 80)
    .showValue(common.VisibilityMode.Never)
    .rowHeight(0.9)
    .colWidth(1)
    .legend(new common.VizLegendOptionsBuilder().showLegend(false))
    .tooltip(tooltipOfAll());
}

// One line per series, with a colour and a word for each state.
export function states(spec: Spec, words: Record<string, dashboard.ValueMappingResult>)
  : PanelBuilder {
  const mapping: dashboard.ValueMap = { type: dashboard.MappingType.ValueToText, options: words };
  return fill(new stateTimeline.PanelBuilder(), spec, 'range')
    .colorScheme(color(dashboard.FieldColorModeId.Thresholds))
    .mappings(Object.keys(words).length > 0 ? [mapping] : [])
    .mergeValues(true)
    .showValue(common.VisibilityMode.Never)
    .rowHeight(0.85)
    .fillOpacity(80)
    .legend(new common.VizLegendOptionsBuilder().showLegend(false))
    .tooltip(tooltipOfAll());
}

// A column of a table: of a label, by its name, or of a query's values, by the query's index.
export interface Column {
  readonly from: string | number;
  readonly title: string;
  readonly unit?: string;
  readonly decimals?: number;
  readonly width?: number;
  readonly thresholds?: Thresholds; // Colours the text.
  readonly links?: readonly Link[];
}

export interface Link {
  readonly title: string;
  readonly url: string;
  readonly targetBlank?: boolean;
}

export interface TableSpec extends Spec {
  readonly columns: readonly Column[];
  readonly hidden?: readonly string[]; // Labels that are no columns.
  readonly sortBy?: { readonly title: string; readonly descending: boolean };
}

// Rows of all queries that agree in their labels become one row.
export function rows(spec: TableSpec): PanelBuilder {
  const several = spec.queries.length > 1;
  const names = spec.columns.map((column) => nameOf(column, several));
  const hidden = ['Time', ...(spec.hidden ?? [])];
  const panel = fill(new table.PanelBuilder(), spec, 'table')
    .cellHeight(common.TableCellHeight.Sm)
    .withTransformation({ id: 'merge', options: {} })
    .withTransformation({
      id: 'organize',
      options: {
        excludeByName: Object.fromEntries(hidden.map((name) => [name, true])),
        indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
        renameByName: Object.fromEntries(
          spec.columns.map((column, index) => [names[index], column.title]),
        ),
      },
    });
  for (const column of spec.columns) {
    const properties = propertiesOf(column);
    if (properties.length > 0) panel.overrideByName(column.title, properties);
  }
  if (spec.sortBy) {
    const by = new common.TableSortByFieldStateBuilder().displayName(spec.sortBy.title);
    panel.sortBy([by.desc(spec.sortBy.descending)]);
  }
  return panel;
}

// Grafana calls the values of one table "Value" and those of several "Value #A", "Value #B", …
function nameOf(column: Column, several: boolean): string {
  if (typeof column.from === 'string') return column.from;
  return several ? `Value #${refId(column.from)}` : 'Value';
}

function propertiesOf(column: Column): dashboard.DynamicConfigValue[] {
  const properties: dashboard.DynamicConfigValue[] = [];
  if (column.unit !== undefined) properties.push({ id: 'unit', value: column.unit });
  if (column.decimals !== undefined) properties.push({ id: 'decimals', value: column.decimals });
  if (column.width !== undefined) properties.push({ id: 'custom.width', value: column.width });
  if (column.thresholds !== undefined) {
    const steps = [...column.thresholds];
    const colored: common.TableColorTextCellOptions = {
      type: common.TableCellDisplayMode.ColorText,
    };
    properties.push(
      { id: 'thresholds', value: { mode: dashboard.ThresholdsMode.Absolute, steps } },
      { id: 'color', value: { mode: dashboard.FieldColorModeId.Thresholds } },
      { id: 'custom.cellOptions', value: colored },
    );
  }
  if (column.links !== undefined) properties.push({ id: 'links', value: [...column.links] });
  return properties;
}
