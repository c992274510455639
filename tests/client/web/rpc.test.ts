import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { auth } from '../../../client/web/src/api/auth';
import { RpcError, envelopes, setBase, streamJson, streamProto, unary } from '../../../client/web/src/api/rpc';

type Answer = (request: IncomingMessage, body: Buffer, response: ServerResponse) => void;

// A real server: what is tested is what goes over the wire.
async function serving(answer: Answer, run: () => Promise<void>): Promise<void> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(request, Buffer.concat(chunks), response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  setBase(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  try {
    await run();
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function envelope(flags: number, message: Uint8Array | string): Buffer {
  const bytes = Buffer.from(message as string);
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

async function failure(call: Promise<unknown>): Promise<RpcError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof RpcError, String(error));
    return error;
  }
  throw new Error('the call did not fail');
}

// RetryInfo with a delay of 0.02 s: Duration{nanos: 20,000,000}.
const RETRY_20_MS = { type: 'google.rpc.RetryInfo', value: Buffer.from([10, 5, 16, 128, 218, 196, 9]).toString('base64') };

test('a call is a POST of JSON with the token in its header alone', async () => {
  let seen = '';
  await serving(
    (request, body, response) => {
      seen = `${request.method} ${request.url} ${request.headers['content-type']} ${request.headers.authorization} ${body.toString()}`;
      json(response, 200, { jobs: [1] });
    },
    async () => {
      auth.take('secret');
      assert.deepEqual(await unary('tacho.v1.View/Fleet', { maxJobs: 3 }), { jobs: [1] });
    },
  );
  assert.equal(seen, 'POST /tacho.v1.View/Fleet application/json Bearer secret {"maxJobs":3}');
});

test('an error carries the code, the text and the delay of the collector', async () => {
  await serving(
    (_, __, response) => json(response, 429, { code: 'resource_exhausted', message: 'too many', details: [RETRY_20_MS] }),
    async () => {
      const error = await failure(unary('a/B', {}, { attempts: 1 }));
      assert.deepEqual([error.code, error.message, error.status, error.retryAfterMs], ['resource_exhausted', 'too many', 429, 20]);
    },
  );
});

test('a call is made again after the delay that the collector names, and not else', async () => {
  let calls = 0;
  const busy: Answer = (_, __, response) => {
    calls++;
    if (calls < 3) json(response, 503, { code: 'unavailable', message: 'busy', details: [RETRY_20_MS] });
    else json(response, 200, { ok: true });
  };
  await serving(busy, async () => assert.deepEqual(await unary('a/B', {}), { ok: true }));
  assert.equal(calls, 3);
  calls = 0;
  await serving(
    (_, __, response) => {
      calls++;
      json(response, 503, { code: 'unavailable', message: 'no delay' });
    },
    async () => assert.equal((await failure(unary('a/B', {}))).code, 'unavailable'),
  );
  assert.equal(calls, 1);
});

test('a proxy that answers in its own words is an error with a code', async () => {
  await serving(
    (_, __, response) => {
      response.writeHead(502);
      response.end('<html>Bad Gateway');
    },
    async () => assert.equal((await failure(unary('a/B', {}))).code, 'unavailable'),
  );
  await serving(
    (_, __, response) => json(response, 503, { code: 503, message: { text: 'busy' }, details: {} }),
    async () => assert.equal((await failure(unary('a/B', {}))).code, 'unavailable'),
  );
  setBase('http://127.0.0.1:1/');
  assert.equal((await failure(unary('a/B', {}))).code, 'unavailable');
});

test('401 asks the person to sign in', async () => {
  auth.take('old');
  await serving(
    (_, __, response) => json(response, 401, { code: 'unauthenticated', message: 'the token is unknown' }),
    async () => assert.equal((await failure(unary('a/B', {}))).code, 'unauthenticated'),
  );
  assert.equal(auth.needed, true);
  assert.equal(auth.reason, 'the token is unknown');
  auth.take('new');
  assert.equal(auth.needed, false);
});

test('never more than three calls are at work, and the important one goes first', async () => {
  let atWork = 0;
  let most = 0;
  const order: string[] = [];
  const slow: Answer = (request, _, response) => {
    most = Math.max(most, ++atWork);
    order.push(request.url ?? '');
    setTimeout(() => {
      atWork--;
      json(response, 200, {});
    }, 20);
  };
  await serving(slow, async () => {
    const calls = Array.from({ length: 9 }, (_, i) => unary(`a/${i}`, {}));
    calls.push(unary('a/first', {}, { priority: 1 }));
    await Promise.all(calls);
  });
  assert.equal(most, 3);
  // Three places become free at about the same time.
  assert.ok([3, 4, 5].includes(order.indexOf('/a/first')), order.join(' '));
});

test('a cancelled call neither runs nor takes a place', { timeout: 10_000 }, async () => {
  let served = 0;
  await serving(
    (_, __, response) => {
      served++;
      setTimeout(() => json(response, 200, {}), 30);
    },
    async () => {
      const stop = new AbortController();
      const running = Array.from({ length: 3 }, () => unary('a/B', {}));
      const waiting = Array.from({ length: 3 }, () => unary('a/B', {}, { signal: stop.signal }));
      stop.abort();
      for (const call of waiting) await assert.rejects(call, { name: 'AbortError' });
      await Promise.all(running);
      await unary('a/B', {});
    },
  );
  assert.equal(served, 4);
});

test('envelopes are found at whatever place the bytes are cut', () => {
  const whole = Buffer.concat([envelope(0, 'one'), envelope(0, ''), envelope(0, 'three'), envelope(2, '{}')]);
  for (let cut = 0; cut <= whole.length; cut++) {
    const got: string[] = [];
    const take = (flags: number, message: Uint8Array): void => void got.push(`${flags}${Buffer.from(message).toString()}`);
    const rest = envelopes(whole.subarray(0, cut), take);
    envelopes(Buffer.concat([rest, whole.subarray(cut)]), take);
    assert.deepEqual(got, ['0one', '0', '0three', '2{}']);
  }
});

test('a stream gives its messages and ends by its last frame', async () => {
  const messages: unknown[] = [];
  await serving(
    (request, body, response) => {
      assert.equal(request.headers['content-type'], 'application/connect+json');
      assert.deepEqual(body, envelope(0, '{"job":"j"}'));
      response.writeHead(200);
      response.write(envelope(0, '{"a":1}').subarray(0, 4));
      setTimeout(() => response.end(Buffer.concat([envelope(0, '{"a":1}').subarray(4), envelope(0, '{"a":2}'), envelope(2, '{}')])), 5);
    },
    () => streamJson('a/B', { job: 'j' }, (message) => messages.push(message)),
  );
  assert.deepEqual(messages, [{ a: 1 }, { a: 2 }]);
});

test('an error in the last frame, and a stream without one, are failures', async () => {
  const end = JSON.stringify({ error: { code: 'deadline_exceeded', message: 'too slow' } });
  await serving(
    (_, __, response) => response.end(Buffer.concat([envelope(0, 'x'), envelope(2, end)])),
    async () => assert.equal((await failure(streamProto('a/B', new Uint8Array(0), () => {}))).code, 'deadline_exceeded'),
  );
  await serving(
    (_, __, response) => response.end(envelope(0, 'x')),
    async () => assert.equal((await failure(streamProto('a/B', new Uint8Array(0), () => {}))).code, 'unavailable'),
  );
});

test('a message that the page cannot read is no broken connection, and the rest is not read', { timeout: 10_000 }, async () => {
  let closed = false;
  await serving(
    (_, __, response) => {
      response.on('close', () => (closed = true));
      response.write(envelope(0, 'x'));
    },
    async () => {
      const broken = () => {
        throw new TypeError('a fault of the page');
      };
      await assert.rejects(streamProto('a/B', new Uint8Array(0), broken), { name: 'TypeError' });
      while (!closed) await new Promise((resolve) => setTimeout(resolve, 1));
    },
  );
});
