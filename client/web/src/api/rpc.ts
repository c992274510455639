// Calls by the Connect protocol (https://connectrpc.com/docs/protocol). At most three are at work
// in a tab, because the collector works on a limited number of queries for everybody.
import { auth } from './auth';

export class RpcError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status = 0,
    readonly details: unknown[] = [],
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
    this.name = 'RpcError';
  }
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  // Higher goes first; 0 if absent.
  priority?: number;
  // Calls in all, if the collector says when to try again; 3 if absent.
  attempts?: number;
  // Does not count among the calls at work: a stream that stays open.
  apart?: boolean;
  // A token to try, instead of the present one.
  token?: string;
}

interface Waiting {
  priority: number;
  go: () => void;
}

const MOST_AT_ONCE = 3;
const MOST_ATTEMPTS = 3;
const LONGEST_RETRY_MS = 10_000;
let atWork = 0;
const waiting: Waiting[] = [];

// For tests and for a page below another prefix; relative to /ui/.
let base = '../';
export function setBase(url: string): void {
  base = url;
}

function acquire(priority: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(aborted());
  if (atWork < MOST_AT_ONCE) {
    atWork++;
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => {
    const entry = { priority, go: resolve };
    const after = waiting.findIndex((w) => w.priority < priority);
    waiting.splice(after < 0 ? waiting.length : after, 0, entry);
    signal?.addEventListener('abort', () => {
      const at = waiting.indexOf(entry);
      if (at < 0) return;
      waiting.splice(at, 1);
      reject(aborted());
    });
  });
}

function release(): void {
  const next = waiting.shift();
  if (next) next.go();
  else atWork--;
}

function aborted(): Error {
  return new DOMException('The call was cancelled.', 'AbortError');
}

export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

// Whether the answer says that there is nothing for this caller.
export function isAbsent(error: unknown): boolean {
  return error instanceof RpcError && ['permission_denied', 'not_found'].includes(error.code);
}

// The delay of a google.rpc.RetryInfo: field 1 is a Duration of seconds and nanoseconds.
export function retryDelay(details: unknown[]): number | null {
  for (const detail of details) {
    const { type, value } = (detail ?? {}) as { type?: string; value?: string };
    if (!type?.endsWith('google.rpc.RetryInfo') || typeof value !== 'string') continue;
    const padded = value.replace(/-/g, '+').replace(/_/g, '/');
    const bytes = Uint8Array.from(atob(padded), (c) => c.charCodeAt(0));
    return duration(bytes);
  }
  return null;
}

function duration(bytes: Uint8Array): number {
  let total = 0;
  let at = 2; // Behind the key and the length of the Duration.
  while (at < bytes.length) {
    const field = bytes[at++] >> 3;
    let value = 0;
    for (let shift = 1; at < bytes.length; shift *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * shift;
      if (byte < 128) break;
    }
    total += field === 1 ? value * 1000 : value / 1e6;
  }
  return total;
}

// What Connect says of an answer without a body of its own.
const CODE_OF_STATUS: Record<number, string> = {
  400: 'internal',
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'unimplemented',
  429: 'unavailable',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
};

interface ErrorBody {
  code?: string;
  message?: string;
  details?: unknown[];
}

export function errorOf(body: ErrorBody, status: number, retryAfter: string | null = null): RpcError {
  // A proxy in between may have a JSON of its own.
  const details = Array.isArray(body.details) ? body.details : [];
  const seconds = retryAfter === null || !/^\d+$/.test(retryAfter) ? null : Number(retryAfter) * 1000;
  const code = typeof body.code === 'string' ? body.code : (CODE_OF_STATUS[status] ?? 'unknown');
  const text = (typeof body.message === 'string' && body.message) || `The collector answered with status ${status}.`;
  return new RpcError(code, text, status, details, retryDelay(details) ?? seconds);
}

async function refused(response: Response): Promise<RpcError> {
  const text = await response.text().catch(() => '');
  let body: ErrorBody = { message: text.slice(0, 500) };
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed && typeof parsed === 'object') body = parsed as ErrorBody;
  } catch {
    // A proxy in between answers in words of its own.
  }
  return errorOf(body, response.status, response.headers.get('Retry-After'));
}

async function post(method: string, type: string, body: BodyInit, options: CallOptions): Promise<Response> {
  const headers: Record<string, string> = { 'Content-Type': type, 'Connect-Protocol-Version': '1' };
  const token = options.token ?? auth.token;
  if (token) headers['Authorization'] = `Bearer ${token}`;
  let response: Response;
  try {
    response = await fetch(base + method, {
      method: 'POST', headers, body, signal: options.signal ?? null, cache: 'no-store', credentials: 'omit', redirect: 'error',
    });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new RpcError('unavailable', 'The collector does not answer. It may be restarting, or the network is down.');
  }
  if (response.ok) return response;
  const error = await refused(response);
  if (error.code === 'unauthenticated' && token === auth.token) auth.refuse(token ? error.message : '');
  throw error;
}

function pause(delay: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, delay);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(aborted());
    });
  });
}

// Runs `call`, again after the delay that the collector names.
async function withRetries<T>(options: CallOptions, call: () => Promise<T>, mayRetry: () => boolean): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    if (!options.apart) await acquire(options.priority ?? 0, options.signal);
    let delay: number;
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof RpcError) || error.retryAfterMs === null) throw error;
      if (attempt >= (options.attempts ?? MOST_ATTEMPTS) || error.retryAfterMs > LONGEST_RETRY_MS || !mayRetry()) throw error;
      delay = error.retryAfterMs * (1 + Math.random() / 4);
    } finally {
      if (!options.apart) release();
    }
    await pause(delay, options.signal);
  }
}

// One request, one answer, both as proto3 JSON.
export function unary<T>(method: string, request: unknown, options: CallOptions = {}): Promise<T> {
  return withRetries(
    options,
    async () => (await (await post(method, 'application/json', JSON.stringify(request), options)).json()) as T,
    () => true,
  );
}

const END = 2;

// The messages of a body of envelopes: a byte of flags, four of length, the message. Returns the
// bytes that are not complete yet.
export function envelopes(bytes: Uint8Array, take: (flags: number, message: Uint8Array) => void): Uint8Array {
  let at = 0;
  while (at + 5 <= bytes.length) {
    const length = new DataView(bytes.buffer, bytes.byteOffset + at + 1, 4).getUint32(0);
    if (at + 5 + length > bytes.length) break;
    take(bytes[at], bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return bytes.subarray(at);
}

function envelope(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(5 + message.length);
  new DataView(out.buffer).setUint32(1, message.length);
  out.set(message, 5);
  return out;
}

async function stream(
  method: string,
  type: string,
  request: Uint8Array,
  onMessage: (message: Uint8Array) => void,
  options: CallOptions,
): Promise<void> {
  let begun = false;
  const once = async (): Promise<void> => {
    const response = await post(method, type, envelope(request), options);
    let ended = false;
    let failure: RpcError | null = null;
    const take = (flags: number, message: Uint8Array): void => {
      if (!(flags & END)) {
        begun = true;
        onMessage(message);
        return;
      }
      ended = true;
      const end = JSON.parse(new TextDecoder().decode(message) || '{}') as { error?: ErrorBody };
      if (end.error) failure = errorOf(end.error, 200);
    };
    await readBody(response, take);
    if (failure) {
      const error: RpcError = failure;
      if (error.code === 'unauthenticated') auth.refuse(auth.token ? error.message : '');
      throw error;
    }
    if (!ended) throw new RpcError('unavailable', 'The answer ended early. The collector may be restarting.');
  };
  await withRetries(options, once, () => !begun);
}

async function readBody(response: Response, take: (flags: number, message: Uint8Array) => void): Promise<void> {
  const reader = response.body!.getReader();
  let rest: Uint8Array = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      if (isAbort(error)) throw error;
      throw new RpcError('unavailable', 'The connection broke in the middle of the answer.');
    });
    if (done) return;
    try {
      rest = envelopes(rest.length ? join(rest, value) : value, take);
    } catch (error) {
      void reader.cancel().catch(() => {}); // Nobody reads the rest.
      throw error;
    }
  }
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

// A call with many answers, as proto3 JSON.
export function streamJson<T>(
  method: string,
  request: unknown,
  onMessage: (message: T) => void,
  options: CallOptions = {},
): Promise<void> {
  const text = new TextDecoder();
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const take = (message: Uint8Array): void => onMessage(JSON.parse(text.decode(message)) as T);
  return stream(method, 'application/connect+json', bytes, take, options);
}

// A call with many answers as protobuf; wire.ts encodes `request` and decodes the messages.
export function streamProto(
  method: string,
  request: Uint8Array,
  onMessage: (message: Uint8Array) => void,
  options: CallOptions = {},
): Promise<void> {
  return stream(method, 'application/connect+proto', request, onMessage, options);
}
