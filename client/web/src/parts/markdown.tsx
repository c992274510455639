// The runbooks' Markdown as elements: headings, paragraphs, lists, code, tables, links. Everything
// else stays text, and no HTML is ever read.
import type { ComponentChildren, VNode } from 'preact';

export interface MarkdownOptions {
  // The target of a link, or null to show its text only.
  link: (target: string) => string | null;
  // What to show for a block of code.
  code: (text: string) => ComponentChildren;
}

const INLINE = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\([^)\s]+\))/;

export function inline(text: string, options: MarkdownOptions): ComponentChildren[] {
  return text.split(INLINE).map((part) => {
    if (part.startsWith('`') && part.length > 2) return <code>{part.slice(1, -1)}</code>;
    if (part.startsWith('**') && part.length > 4) return <strong>{part.slice(2, -2)}</strong>;
    const link = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(part);
    if (link) {
      const target = options.link(link[2]);
      const content = inline(link[1], options);
      return target === null ? <>{content}</> : <a href={target}>{content}</a>;
    }
    if (part.startsWith('*') && part.endsWith('*') && part.length > 2) return <em>{part.slice(1, -1)}</em>;
    return part;
  });
}

function table(lines: string[], options: MarkdownOptions): VNode {
  const cells = (line: string): string[] => line.replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());
  const [head, , ...rows] = lines;
  return (
    <table class="data">
      <thead><tr>{cells(head).map((cell) => <th scope="col">{inline(cell, options)}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr>{cells(row).map((cell) => <td>{inline(cell, options)}</td>)}</tr>)}</tbody>
    </table>
  );
}

function list(lines: string[], options: MarkdownOptions): VNode {
  const items: string[] = [];
  for (const line of lines) {
    const item = /^(?:[-*]|\d+\.) (.*)$/.exec(line);
    if (item) items.push(item[1]);
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  const content = items.map((item) => <li>{inline(item, options)}</li>);
  return /^\d/.test(lines[0]) ? <ol>{content}</ol> : <ul>{content}</ul>;
}

// The lines of a block that begins at `at`, up to an empty line.
function block(lines: string[], at: number): number {
  let end = at;
  while (end < lines.length && lines[end].trim() !== '' && !lines[end].startsWith('```')) end++;
  return Math.max(end, at + 1);
}

export function markdown(text: string, options: MarkdownOptions): VNode[] {
  const lines = text.split('\n');
  const out: VNode[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const heading = /^(#{1,4}) (.*)$/.exec(line);
    if (line.trim() === '' || line.startsWith('<!--')) {
      at++;
    } else if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      const close = end < 0 ? lines.length : end;
      out.push(<pre tabIndex={0}>{options.code(lines.slice(at + 1, close).join('\n'))}</pre>);
      at = close + 1;
    } else if (heading) {
      const Level = `h${heading[1].length}` as 'h1';
      out.push(<Level>{inline(heading[2], options)}</Level>);
      at++;
    } else {
      const end = block(lines, at);
      const part = lines.slice(at, end);
      if (line.startsWith('|')) out.push(table(part, options));
      else if (/^([-*]|\d+\.) /.test(line)) out.push(list(part, options));
      else out.push(<p>{inline(part.join(' '), options)}</p>);
      at = end;
    }
  }
  return out;
}
