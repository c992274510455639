// When to ask again after a failure.
import { RpcError } from './rpc';

const LONGEST_MS = 60_000;
const JITTER = 0.2;

// How long to wait before the next call: ± 20 % so that tabs do not march in step, doubling with
// each failure, and never sooner than the collector says. `random` is in [0, 1).
export function nextDelay(everyMs: number, failures: number, retryAfterMs: number | null, random: number): number {
  const doubled = failures === 0 ? everyMs : Math.min(Math.max(everyMs, 1000) * 2 ** failures, LONGEST_MS);
  return Math.max(doubled * (1 - JITTER + 2 * JITTER * random), retryAfterMs ?? 0);
}

export function asRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  return new RpcError('internal', error instanceof Error ? error.message : String(error));
}
