// A table of which only the rows in view exist, so that ten thousand are as quick as ten. Rows have
// one height; the page itself scrolls.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { fmt } from './format';

export interface Column<Row> {
  key: string;
  title: string;
  cell: (row: Row) => ComponentChildren;
  number?: boolean; // Aligned right, with equal digits.
  className?: string;
  sort?: boolean; // Its title is a button: see onSort.
  hint?: string;
}

export interface TableProps<Row> {
  label: string; // What the table is, for screen readers.
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  rowClass?: (row: Row) => string;
  rowHeight?: number; // CSS pixels, with `virtual`; 54 if absent.
  virtual?: boolean;
  selected?: number; // An index of `rows`, marked and kept in view.
  sorted?: { key: string; down: boolean };
  onSort?: (key: string) => void;
  head?: string; // The key of the column that names a row; the first one if absent.
}

const WHOLE_UP_TO = 60; // Rows; longer tables have only what is in view.
const SPARE = 8;

interface Slice {
  from: number;
  to: number;
}

function useSlice(on: boolean, rows: number, height: number) {
  const box = useRef<HTMLTableSectionElement>(null);
  const [slice, set] = useState<Slice>({ from: 0, to: Math.min(rows, WHOLE_UP_TO) });
  useEffect(() => {
    if (!on) return;
    let frame = 0;
    const look = (): void => {
      frame = 0;
      const top = box.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - SPARE);
      const count = Math.ceil(window.innerHeight / height) + 2 * SPARE;
      set((old) => {
        const from = Math.max(0, Math.min(first, rows - count));
        return old.from === from && old.to === from + count ? old : { from, to: from + count };
      });
    };
    const later = (): void => {
      if (!frame) frame = requestAnimationFrame(look);
    };
    look();
    window.addEventListener('scroll', later, { passive: true });
    window.addEventListener('resize', later);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener('scroll', later);
      window.removeEventListener('resize', later);
    };
  }, [on, rows, height]);
  return { box, slice: on ? slice : { from: 0, to: rows } };
}

function Filler({ rows, height, columns }: { rows: number; height: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    <tr class="filler" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * height}px` }} />
    </tr>
  );
}

function Heads<Row>({ columns, sorted, onSort }: Pick<TableProps<Row>, 'columns' | 'sorted' | 'onSort'>) {
  return (
    <thead>
      <tr>
        {columns.map((c) => {
          const mine = sorted?.key === c.key;
          const order = mine ? (sorted.down ? 'descending' : 'ascending') : undefined;
          return (
            <th key={c.key} scope="col" class={c.number ? 'n' : ''} aria-sort={order} title={c.hint}>
              {c.sort && onSort ? (
                <button class="plain" onClick={() => onSort(c.key)}>
                  {fmt.text(c.title)}
                  <span aria-hidden="true">{mine ? (sorted.down ? ' ↓' : ' ↑') : ''}</span>
                </button>
              ) : (
                fmt.text(c.title)
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

export function DataTable<Row>(props: TableProps<Row>) {
  const { columns, rows, rowHeight = 54, virtual = false, selected = -1 } = props;
  const windowed = virtual && rows.length > WHOLE_UP_TO;
  const { box, slice } = useSlice(windowed, rows.length, rowHeight);
  useLayoutEffect(() => {
    if (selected < 0 || !box.current) return;
    const row = box.current.querySelector(`[data-row="${selected}"]`);
    if (row) row.scrollIntoView({ block: 'nearest' });
    else if (windowed) window.scrollBy(0, box.current.getBoundingClientRect().top + selected * rowHeight - window.innerHeight / 2);
  }, [selected < 0 || !rows[selected] ? '' : props.rowKey(rows[selected])]); // Not when the order changes.
  const to = Math.min(slice.to, rows.length);
  const from = Math.min(slice.from, to);
  const head = props.head ?? columns[0]?.key;
  return (
    <table class={windowed ? 'data windowed' : 'data'} aria-label={props.label} aria-rowcount={rows.length + 1}>
      <Heads columns={columns} sorted={props.sorted} onSort={props.onSort} />
      <tbody ref={box}>
        <Filler rows={from} height={rowHeight} columns={columns.length} />
        {rows.slice(from, to).map((row, i) => {
          const index = from + i;
          const classes = [props.rowClass?.(row), index === selected ? 'selected' : ''].filter(Boolean).join(' ');
          return (
            <tr key={props.rowKey(row)} class={classes} data-row={index} aria-rowindex={index + 2}>
              {columns.map((c) => cell(c, row, c.key === head))}
            </tr>
          );
        })}
        <Filler rows={rows.length - to} height={rowHeight} columns={columns.length} />
      </tbody>
    </table>
  );
}

function cell<Row>(column: Column<Row>, row: Row, head: boolean) {
  const classes = [column.number ? 'n' : '', column.className ?? ''].filter(Boolean).join(' ');
  return head ? (
    <th key={column.key} scope="row" class={classes} data-title={column.title}>{column.cell(row)}</th>
  ) : (
    <td key={column.key} class={classes} data-title={column.title}>{column.cell(row)}</td>
  );
}
