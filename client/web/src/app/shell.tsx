// Header, screen, and what lies above all screens.
import type { ComponentType } from 'preact';
import { Agents } from '../screens/agents';
import { Collector } from '../screens/collector';
import { Compare } from '../screens/compare';
import { Fleet } from '../screens/fleet';
import { Host } from '../screens/host';
import { Hosts } from '../screens/hosts';
import { Job } from '../screens/job';
import { Empty } from '../parts/states';
import { href, useRoute } from './route';
import type { ScreenProps } from './screen';

const SCREENS: Record<string, ComponentType<ScreenProps>> = {
  fleet: Fleet, job: Job, compare: Compare, hosts: Hosts, host: Host, agents: Agents, collector: Collector,
};
const NAVIGATION = [['fleet', 'Fleet'], ['compare', 'Compare'], ['hosts', 'Hosts'], ['agents', 'Agents'], ['collector', 'Collector']];

function Missing({ route }: ScreenProps) {
  return <Empty title={`There is no screen “${route.screen}”`} hint="The link may be of a newer page." />;
}

export function Shell() {
  const route = useRoute();
  const Screen = Object.hasOwn(SCREENS, route.screen) ? SCREENS[route.screen] : Missing;
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">Tachograph</a>
        <nav aria-label="Screens">
          {NAVIGATION.map(([screen, title]) => (
            <a key={screen} href={href({ screen, name: '', tab: '' })} aria-current={route.screen === screen ? 'page' : undefined}>{title}</a>
          ))}
        </nav>
      </header>
      <main id="main"><Screen key={`${route.screen}/${route.name}`} route={route} /></main>
    </>
  );
}
