import type { TabProps } from '../app/screen';

export function FirstNan({ route }: TabProps) {
  return <p>FirstNan {route.name}</p>;
}
