// Where panels stand. Grafana's grid has 24 columns; at a width of 1366 px one is about 55 px wide,
// so that six columns still show a number with its unit, and eight a graph with its legend.
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import type * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import { RowBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import type { PanelBuilder } from './panel';

export const kColumns = 24;

// Panels of one height, side by side, of equal width unless `widths` says otherwise.
export interface Line {
  readonly height: number; // Grid units of 30 px and 8 px between.
  readonly panels: readonly PanelBuilder[];
  readonly widths?: readonly number[];
}

export interface Section {
  readonly title: string;
  readonly lines: readonly Line[];
}

export const kNumberHeight = 4;
export const kGraphHeight = 8;

export function numbers(...panels: PanelBuilder[]): Line {
  return { height: kNumberHeight, panels };
}

export function graphs(...panels: PanelBuilder[]): Line {
  return { height: kGraphHeight, panels };
}

class Placed<T> implements Builder<T> {
  constructor(private readonly object: T) {}
  build(): T {
    return this.object;
  }
}

interface Placing {
  withRow(row: Builder<dashboard.RowPanel>): unknown;
  withPanel(panel: Builder<dashboard.Panel>): unknown;
}

// Puts the sections below each other, each under a heading. Numbers the panels from 1.
export function place(board: Placing, sections: readonly Section[]): void {
  let id = 0;
  let y = 0;
  for (const section of sections) {
    const heading = new RowBuilder(section.title).id(++id).gridPos({ x: 0, y, w: kColumns, h: 1 });
    board.withRow(heading);
    y += 1;
    for (const line of section.lines) {
      let x = 0;
      line.panels.forEach((builder, index) => {
        const panel = builder.build();
        const w = widthsOf(line)[index] ?? 0;
        panel.id = ++id;
        panel.gridPos = { x, y, w, h: line.height };
        board.withPanel(new Placed(panel));
        x += w;
      });
      if (x !== kColumns) throw new Error(`a line of "${section.title}" is ${x} columns wide`);
      y += line.height;
    }
  }
}

function widthsOf(line: Line): readonly number[] {
  return line.widths ?? line.panels.map(() => kColumns / line.panels.length);
}
