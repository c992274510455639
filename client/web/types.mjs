// Writes src/api/types.ts: what the messages of tacho.v1 look like as proto3 JSON. It reads the
// .proto files themselves, which keep to one declaration a line, so that no protoc is needed.
import { readFileSync, writeFileSync } from 'node:fs';

const FILES = ['types', 'marks', 'conditions', 'goodput', 'query', 'view'];
const SCALARS = {
  string: 'string', bool: 'boolean', bytes: 'string',
  double: 'Double', float: 'Double',
  uint32: 'number', int32: 'number', sint32: 'number', fixed32: 'number', sfixed32: 'number',
  uint64: 'Int64', int64: 'Int64', sint64: 'Int64', fixed64: 'Int64', sfixed64: 'Int64',
};

const camel = (name) => name.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());

function statements(text) {
  return text.replace(/\/\/.*$/gm, '').replace(/\s+/g, ' ').match(/[^;{}]*[;{}]/g) ?? [];
}

function convert(text, out) {
  const stack = [];
  for (const raw of statements(text)) {
    const line = raw.trim();
    const opens = /^(message|enum|oneof|service|rpc)\s*(\w+)?.*\{$/.exec(line);
    if (opens) {
      stack.push({ kind: opens[1], name: opens[2], lines: [] });
    } else if (line.endsWith('{')) {
      stack.push({ kind: 'other', lines: [] });
    } else if (line.endsWith('}')) {
      close(stack.pop(), stack, out);
    } else if (stack.length) {
      declare(line, stack, stack[stack.length - 1]);
    }
  }
}

function declare(line, stack, block) {
  if (block.kind === 'enum') {
    const value = /^(\w+) = \d+/.exec(line);
    if (value) block.lines.push(`'${value[1]}'`);
    return;
  }
  if (block.kind !== 'message' && block.kind !== 'oneof') return;
  const owner = [...stack].reverse().find((b) => b.kind === 'message');
  const map = /^map<\w+, (\w+)> (\w+) = \d+/.exec(line);
  if (map) {
    owner.lines.push(`  ${camel(map[2])}?: Record<string, ${SCALARS[map[1]] ?? map[1]}>;`);
    return;
  }
  const field = /^(optional |repeated )?([\w.]+) (\w+) = \d+/.exec(line);
  if (!field || field[2] === 'reserved') return;
  const type = SCALARS[field[2]] ?? field[2].split('.').pop();
  owner.lines.push(`  ${camel(field[3])}?: ${type}${field[1] === 'repeated ' ? '[]' : ''};`);
}

function close(block, stack, out) {
  if (!block) return;
  if (block.kind === 'enum') out.push(`export type ${block.name} =\n  | ${block.lines.join('\n  | ')};\n`);
  if (block.kind === 'message') {
    out.push(block.lines.length ? `export interface ${block.name} {\n${block.lines.join('\n')}\n}\n` : `export type ${block.name} = Record<string, never>;\n`);
  }
}

const out = [
  `// Written by types.mjs from proto/tacho/v1; edit those files, then run build.sh.\n//
// proto3 JSON leaves out what has its default: 0, "", false, an empty list.\n`,
  `// 64-bit integers are strings of digits: num() and ms() in json.ts read them.\nexport type Int64 = string | number;\n`,
  `// Or "NaN", "Infinity", "-Infinity": num() reads them.\nexport type Double = number | string;\n`,
];
for (const file of FILES) convert(readFileSync(`../../proto/tacho/v1/${file}.proto`, 'utf8'), out);
writeFileSync(process.argv[2] ?? 'src/api/types.ts', out.join('\n'));
