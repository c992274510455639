// The token among the tabs of a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auth } from '../../../client/web/src/api/auth';
import { fleetStore } from '../../../client/web/src/app/store';

// It does not keep the test alive.
class Channel extends BroadcastChannel {
  constructor(name: string) {
    super(name);
    (this as unknown as { unref(): void }).unref();
  }
}

async function told(channel: BroadcastChannel, message: unknown): Promise<void> {
  channel.postMessage(message);
  await new Promise((resolve) => setTimeout(resolve, 250));
}

test('who signs out in one tab is signed out in all, and nobody hands the token back', async () => {
  globalThis.BroadcastChannel = Channel as unknown as typeof BroadcastChannel;
  const other = new BroadcastChannel('tacho-token');
  const heard: { token?: string; signOut?: boolean }[] = [];
  other.onmessage = (event: MessageEvent) => void heard.push(event.data as { token?: string });
  auth.start();
  auth.signIn('secret', false);
  await told(other, { ask: true });
  assert.deepEqual(heard.flatMap((m) => m.token ?? []), ['secret', 'secret']);

  fleetStore.set([{ job: { name: 'private' } }]);
  await told(other, { signOut: true });
  assert.deepEqual([auth.token, auth.needed], [null, true]);
  assert.deepEqual(fleetStore.jobs, [], 'what the token showed goes with it');
  fleetStore.set([{ job: { name: 'late' } }]);
  assert.deepEqual(fleetStore.jobs, [], 'an answer that comes late is not kept');

  heard.length = 0;
  await told(other, { ask: true });
  assert.equal(heard.length, 0, 'it neither answers nor says again that it signed out');

  auth.signIn('another', false);
  auth.signOut();
  await told(other, {});
  assert.ok(heard.some((m) => m.signOut));
});
