// Writes the dashboards and their description.
//
//   node main.js DIRECTORY    DIRECTORY/*.json and DIRECTORY/screens.md
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './board';
import { kCluster } from './cluster';
import { kCollector } from './collector';
import { kFleet } from './fleet';
import { kHost } from './host';
import { kJob } from './job';
import { describe } from './screens';

function main(directory: string | undefined): void {
  if (directory === undefined) throw new Error('usage: main.js DIRECTORY');
  mkdirSync(directory, { recursive: true });
  const boards = [kFleet, kJob, kHost, kCollector, kCluster].map((board) => {
    const built = build(board);
    writeFileSync(join(directory, `${board.name}.json`), `${JSON.stringify(built, null, 2)}\n`);
    return built;
  });
  writeFileSync(join(directory, 'screens.md'), describe(boards));
}

main(process.argv[2]);
