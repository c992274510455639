// Bundles src/ and its style into a directory: bundle.mjs DIRECTORY [--watch]. File names carry the
// hash of what is in them, so that a browser may keep them for ever; index.html names them. The fleet
// comes with the first script; other screens are scripts of their own, so that the first look waits
// for a third of the code.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { context } from 'esbuild';

const [target, mode] = process.argv.slice(2);
const COMMON = {
  entryPoints: [{ in: 'src/main.tsx', out: 'app' }],
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  minify: true,
  metafile: true,
  write: false,
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  outdir: target,
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
};

function licences() {
  const version = JSON.parse(readFileSync('node_modules/preact/package.json', 'utf8')).version;
  const text = readFileSync('node_modules/preact/LICENSE', 'utf8');
  return `The page contains Preact ${version} (https://preactjs.com), under this licence:\n\n${text}`;
}

// The first script, and those that it cannot begin without.
function firstScripts(metafile) {
  const outputs = Object.entries(metafile.outputs);
  const [first, { imports }] = outputs.find(([, output]) => output.entryPoint === 'src/main.tsx');
  const needed = imports.filter((i) => i.kind === 'import-statement').map((i) => basename(i.path));
  return [basename(first), needed.sort()];
}

function page(files, scripts, style) {
  const icon = readFileSync('icon.svg');
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8).toUpperCase()}.svg`;
  const [first, needed] = firstScripts(scripts.metafile);
  const preloads = needed.map((name) => `<link rel="modulepreload" href="./${name}">`).join('\n');
  const names = { ICON: iconName, STYLE: basename(style.path), SCRIPT: first, PRELOADS: preloads };
  const html = readFileSync('index.html', 'utf8').replace(/ICON|STYLE|SCRIPT|PRELOADS/g, (word) => names[word]);
  files.set(iconName, icon);
  files.set('LICENSES.txt', licences());
  files.set('index.html', html.replace(/\n\n+/g, '\n'));
}

// Styles of all screens are one file: they are small, and a screen must not appear without its own.
function write(scripts, styles) {
  const files = new Map();
  for (const file of scripts.outputFiles) files.set(basename(file.path), file.contents);
  const style = styles.outputFiles.find((file) => file.path.endsWith('.css'));
  files.set(basename(style.path), style.contents);
  page(files, scripts, style);
  mkdirSync(target, { recursive: true });
  for (const [name, content] of files) if (name !== 'index.html') writeFileSync(join(target, name), content);
  writeFileSync(join(target, 'index.html'), files.get('index.html'));
  for (const name of readdirSync(target)) if (!files.has(name)) rmSync(join(target, name));
}

const styleBuild = await context(COMMON);
const scriptBuild = await context({
  ...COMMON,
  splitting: true,
  loader: { '.css': 'empty' },
  plugins: mode === '--watch' ? [{ name: 'page', setup: (build) => build.onEnd(watched) }] : [],
});

async function watched(scripts) {
  if (scripts.errors.length) return;
  const styles = await styleBuild.rebuild().catch(() => null); // esbuild has told its own.
  if (styles) write(scripts, styles);
}

if (mode === '--watch') {
  await scriptBuild.watch();
  console.error('web: watching src/; the files are in', target);
} else {
  let status = 1;
  try {
    write(await scriptBuild.rebuild(), await styleBuild.rebuild());
    status = 0;
  } catch (error) {
    if (!error.errors) console.error(error); // esbuild has told its own.
  }
  await Promise.all([scriptBuild.dispose(), styleBuild.dispose()]);
  process.exit(status);
}
