// One machine: its chips, processors, memory, disks and network.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './board';
import { graphs, numbers, type Section } from './grid';
import { graph, kNone, kPlain, limits, number, type PanelBuilder, rows, type Spec } from './panel';
import { byHost, ofHosts } from './query';
import { kConditionsText } from './words';

type Figure = Pick<Spec, 'title' | 'description' | 'unit'> & Partial<Spec> & {
  readonly expr: string;
};

function figure(spec: Figure): PanelBuilder {
  const queries = [{ expr: spec.expr, legend: spec.title }];
  return number({ thresholds: kPlain, queries, ...spec });
}

const kNow = [
  figure({
    title: 'CPU in use',
    description: 'Busy share of all processors, on the busiest of the chosen hosts.',
    expr: `max(${byHost('host_cpu_utilization_ratio', 'max')})`,
    unit: units.PercentUnit,
    thresholds: limits(0.8, 0.95),
    min: 0,
    max: 1,
  }),
  figure({
    title: 'Memory in use',
    description: 'Share of memory that is not available, on the fullest of the chosen hosts.',
    expr: `max(1 - ${byHost('host_memory_available_bytes', 'min')} / ` +
      `${byHost('host_memory_total_bytes', 'max')})`,
    unit: units.PercentUnit,
    thresholds: limits(0.85, 0.95),
    min: 0,
    max: 1,
  }),
  figure({
    title: 'Duty cycle of the chips',
    description: 'Mean over the chips, on the idlest of the chosen hosts.',
    expr: `min(${byHost('chip_duty_cycle_ratio', 'avg')})`,
    unit: units.PercentUnit,
    thresholds: limits(0.5, 0.2),
    min: 0,
    max: 1,
  }),
  figure({
    title: 'Up for',
    description: 'Time since the machine started, for the newest start of the chosen hosts.',
    expr: `min(${byHost('host_uptime_seconds', 'min')})`,
    unit: units.Seconds,
    decimals: 1,
  }),
];

function lines(
  title: string, description: string, unit: string,
  queries: Parameters<typeof graph>[0]['queries'], more: Partial<Parameters<typeof graph>[0]> = {},
): PanelBuilder {
  return graph({ title, description, unit, thresholds: kPlain, queries, min: 0, ...more });
}

function each(metric: string, stat: 'max' | 'avg' | 'sum' | 'min', what: string) {
  return { expr: byHost(metric, stat), legend: `{{host}} ${what}` };
}

function growth(metric: string, what: string) {
  return {
    expr: `max by (host) (rate(${ofHosts(metric, 'sum')}[$__rate_interval]))`,
    legend: `{{host}} ${what}`,
  };
}

function errors(counter: string): string {
  return `sum(max by (host) (increase(${ofHosts(counter, 'sum')}[5m])))`;
}

const kConditions = rows({
  title: 'Conditions that name this host',
  description: `Conditions whose first culprit is this host. ${kConditionsText}`,
  unit: units.Short,
  thresholds: kPlain,
  queries: [{
    expr: 'max by (job, condition, severity, reason, host, task, chip, step) ' +
      '(tacho_job_condition_info{host=~"$host",host!=""})',
  }],
  columns: [
    { from: 'host', title: 'Host' },
    { from: 'job', title: 'Job' },
    { from: 'condition', title: 'Condition' },
    { from: 'severity', title: 'Severity', width: 90 },
    { from: 'reason', title: 'Reason', width: 320 },
    { from: 'task', title: 'Task', width: 70 },
    { from: 'chip', title: 'Chip', width: 70 },
    { from: 'step', title: 'Step', width: 90 },
  ],
  hidden: ['Value'],
});

const kMachine: Section = {
  title: 'Machine',
  lines: [
    numbers(...kNow),
    { height: 6, panels: [kConditions] },
    graphs(
      lines('CPU', 'Busy share of all processors.', units.PercentUnit,
        [each('host_cpu_utilization_ratio', 'max', 'busy')],
        { max: 1, thresholds: limits(0.8, 0.95) }),
      lines('Load', 'Threads that run, are ready to run or wait for a disk, over one minute.',
        units.Short, [each('host_load1', 'max', 'load'), each('host_cpus', 'max', 'processors')]),
    ),
    graphs(
      lines('Memory', 'All memory, and the memory available to programs.', units.BytesIEC, [
        each('host_memory_total_bytes', 'max', 'all'),
        each('host_memory_available_bytes', 'min', 'available'),
      ]),
      lines('Pressure', 'Share of the time in which a thread waited for a processor, for ' +
        'memory, or for a disk (pressure stall information of Linux).', units.PercentUnit, [
        growth('host_pressure_cpu_waiting_seconds_total', 'processor'),
        growth('host_pressure_memory_waiting_seconds_total', 'memory'),
        growth('host_pressure_io_waiting_seconds_total', 'disk'),
      ], { thresholds: limits(0.1, 0.3) }),
    ),
    graphs(
      lines('Network', 'Bytes a second over all devices.', units.BytesPerSecondSI, [
        growth('host_network_receive_bytes_total', 'in'),
        growth('host_network_transmit_bytes_total', 'out'),
      ]),
      lines('Disks', 'Bytes a second over all disks.', units.BytesPerSecondSI, [
        growth('host_disk_read_bytes_total', 'read'),
        growth('host_disk_write_bytes_total', 'written'),
      ]),
    ),
  ],
};

const kChips: Section = {
  title: 'Chips',
  lines: [
    graphs(
      lines('Duty cycle', 'Share of the time in which a chip computed: busiest and idlest chip.',
        units.PercentUnit, [
          each('chip_duty_cycle_ratio', 'max', 'busiest'),
          each('chip_duty_cycle_ratio', 'min', 'idlest'),
        ], { max: 1 }),
      lines('HBM', 'Memory in use on the fullest chip, and the memory of a chip.', units.BytesIEC, [
        each('chip_hbm_used_bytes', 'max', 'used'),
        each('chip_hbm_total_bytes', 'min', 'all'),
      ]),
    ),
    graphs(
      lines('Power', 'Sum over the chips of a host, and their power limit.', units.Watt,
        [each('chip_power_watts', 'sum', 'power'), each('chip_power_limit_watts', 'sum', 'limit')]),
      lines('Temperature', 'The hottest chip of each host.', units.Celsius,
        [each('chip_temperature_celsius', 'max', 'hottest')],
        { thresholds: limits(80, 90), showThresholds: true }),
    ),
    graphs(
      lines('Clock', 'The slowest chip of each host.', units.Hertz,
        [each('chip_clock_hertz', 'min', 'slowest')]),
      lines('Hardware errors', 'Errors in five minutes, over the chips of the chosen hosts.',
        units.Short, [
          { expr: errors('chip_ecc_uncorrected_total'), legend: 'ECC, uncorrected' },
          { expr: errors('chip_xid_errors_total'), legend: 'XID' },
          { expr: errors('chip_link_errors_total'), legend: 'links' },
        ], { thresholds: kNone, showThresholds: true, decimals: 0 }),
    ),
  ],
};

export const kHost: Board = {
  name: 'host',
  description: 'One machine of the fleet: processors, memory, disks, network, chips.',
  variables: [{
    name: 'host',
    label: 'Host',
    description: 'Machines to show.',
    query: 'label_values(tacho_job_host_memory_total_bytes{host!=""}, host)',
    many: true,
  }],
  sections: [kMachine, kChips],
  screen: 'hosts',
};
