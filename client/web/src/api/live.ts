// What the badge in the header tells: whether answers come, and the collector's clock. Ages are
// measured by that clock, because the browser's may be wrong.

import { listeners } from './listeners';

const told = listeners();
const tell = told.tell;
let offset = 0; // The collector's clock minus ours, ms.
let skewKnown = false;

export const live = {
  lastAnswerMs: 0, // By our clock; 0: none yet.
  failing: '', // The text of the newest failure; empty after an answer.
  failingCode: '',
  paused: false,
  on: told.on,
  answered(): void {
    live.lastAnswerMs = Date.now();
    const was = live.failing;
    live.failing = live.failingCode = '';
    if (was) tell();
  },
  failed(code: string, text: string): void {
    live.failing = text || code;
    live.failingCode = code;
    tell();
  },
  pause(paused: boolean): void {
    live.paused = paused;
    tell();
  },
  // The collector said what time it is. One answer's delay is noise: only a change by more than a
  // quarter second counts.
  clock(collectorMs: number): void {
    const now = collectorMs - Date.now();
    if (!skewKnown || Math.abs(now - offset) > 250) offset = now;
    skewKnown = true;
  },
  get skewMs(): number {
    return offset;
  },
};

// Now, by the collector's clock, in ms since the Unix epoch.
export function collectorNow(): number {
  return Date.now() + offset;
}
