import type { ComponentType } from 'preact';
import { href } from '../app/route';
import type { ScreenProps, TabProps } from '../app/screen';
import { About } from './about';
import { Goodput } from './goodput';
import { Metrics } from './metrics';
import { FirstNan } from './nan';
import { Tasks } from './tasks';
import { Timeline } from './timeline';

export const TABS: [string, string, ComponentType<TabProps>][] = [
  ['metrics', 'Metrics', Metrics],
  ['tasks', 'Tasks', Tasks],
  ['timeline', 'Timeline', Timeline],
  ['nan', 'First NaN', FirstNan],
  ['goodput', 'Goodput', Goodput],
  ['about', 'About', About],
];

export function Job({ route }: ScreenProps) {
  const Tab = TABS.find((tab) => tab[0] === route.tab)?.[2];
  return (
    <>
      <h1>{route.name}</h1>
      <nav class="tabs" aria-label="Views of the job">
        <a href={href({ tab: '' })}>Overview</a>
        {TABS.map(([tab, title]) => (
          <a key={tab} href={href({ tab })}>{title}</a>
        ))}
      </nav>
      {Tab ? <Tab job={route.name} route={route} /> : null}
    </>
  );
}
