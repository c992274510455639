// Bundles src/ and its style into a directory: bundle.mjs DIRECTORY [--watch]. File names carry the
// hash of what is in them, so that a browser may keep them for ever; index.html names them. One
// bundle, not one for each screen: all of it is smaller than one picture, and a screen then opens
// without another request.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { context } from 'esbuild';

const [target, mode] = process.argv.slice(2);

function licences() {
  const version = JSON.parse(readFileSync('node_modules/preact/package.json', 'utf8')).version;
  const text = readFileSync('node_modules/preact/LICENSE', 'utf8');
  return `The page contains Preact ${version} (https://preactjs.com), under this licence:\n\n${text}`;
}

function nameOf(result, end) {
  const outputs = Object.keys(result.metafile.outputs).map((path) => basename(path));
  return outputs.find((name) => name.endsWith(end));
}

function finish(result) {
  if (result.errors.length) return;
  const icon = readFileSync('icon.svg');
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8).toUpperCase()}.svg`;
  const script = nameOf(result, '.js');
  const style = nameOf(result, '.css');
  const page = readFileSync('index.html', 'utf8');
  const names = { ICON: iconName, STYLE: style, SCRIPT: script };
  const keep = new Set([script, style, iconName, 'index.html', 'LICENSES.txt']);
  writeFileSync(join(target, iconName), icon);
  writeFileSync(join(target, 'LICENSES.txt'), licences());
  writeFileSync(join(target, 'index.html'), page.replace(/ICON|STYLE|SCRIPT/g, (word) => names[word]));
  for (const name of readdirSync(target)) if (!keep.has(name)) rmSync(join(target, name));
}

mkdirSync(target, { recursive: true });
const builder = await context({
  entryPoints: [{ in: 'src/main.tsx', out: 'app' }],
  entryNames: '[name]-[hash]',
  outdir: target,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  minify: true,
  metafile: true,
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  plugins: [{ name: 'page', setup: (build) => build.onEnd(finish) }],
});
if (mode === '--watch') {
  await builder.watch();
  console.error('web: watching src/; the files are in', target);
} else {
  const result = await builder.rebuild().catch(() => null);
  await builder.dispose();
  if (!result || result.errors.length) process.exit(1);
}
