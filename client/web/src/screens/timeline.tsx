import type { TabProps } from '../app/screen';

export function Timeline({ route }: TabProps) {
  return <p>Timeline {route.name}</p>;
}
