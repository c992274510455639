// Screens whose code comes when they are first opened.
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { RpcError } from '../api/rpc';
import { Failed, Loading } from '../parts/states';
import type { ScreenProps } from './screen';

type Load = () => Promise<ComponentType<ScreenProps>>;

export interface LazyScreen {
  Screen: ComponentType<ScreenProps>;
  // Fetches the code ahead of its use; what fails here is tried again when it is needed.
  prepare: () => void;
}

export function lazy(load: Load): LazyScreen {
  let known: ComponentType<ScreenProps> | null = null;
  const get = async (): Promise<ComponentType<ScreenProps>> => (known ??= await load());
  function Screen(props: ScreenProps) {
    const [state, set] = useState<{ screen: ComponentType<ScreenProps> | null; failed: boolean }>({ screen: known, failed: false });
    useEffect(() => {
      if (state.screen) return;
      get().then(
        (screen) => set({ screen, failed: false }),
        () => set({ screen: null, failed: true }),
      );
    }, []);
    if (state.screen) return <state.screen {...props} />;
    if (!state.failed) return <Loading height={600} />;
    const text = 'This part of the page could not be loaded. The collector may have been replaced by another version.';
    return <Failed error={new RpcError('unavailable', text)}><button onClick={() => location.reload()}>Load the page again</button></Failed>;
  }
  return { Screen, prepare: () => void get().catch(() => undefined) };
}
