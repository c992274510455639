// Parts of one job's dashboard: its chips, their load and their faults.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { graphs, type Section } from './grid';
import { graph, heatMap, kNone, kPlain, limits } from './panel';
import { byHost, ofAttempt, ofJob, onHostsOfJob } from './query';

const kDuty = heatMap({
  title: 'Duty cycle by host',
  description:
    'Mean over the chips of each host. Blue is idle, red is busy. If one line turns blue, that ' +
    'host hangs. If all lines do, the job waits.',
  unit: units.PercentUnit,
  thresholds: limits(0.5, 0.2),
  queries: [{ expr: onHostsOfJob(byHost('chip_duty_cycle_ratio', 'avg')), legend: '{{host}}' }],
  min: 0,
  max: 1,
});

const kHbm = graph({
  title: 'HBM',
  description:
    'Memory of the chips: fullest, mean, emptiest, and the memory of a chip. A line that climbs ' +
    'to the limit will run out of memory.',
  unit: units.BytesIEC,
  thresholds: kPlain,
  queries: [
    { expr: ofJob('chip_hbm_used_bytes', 'max'), legend: 'fullest' },
    { expr: ofJob('chip_hbm_used_bytes', 'avg'), legend: 'mean' },
    { expr: ofJob('chip_hbm_used_bytes', 'min'), legend: 'emptiest' },
    { expr: ofJob('chip_hbm_total_bytes', 'min'), legend: 'limit' },
  ],
  min: 0,
});

const kHbmShare = heatMap({
  title: 'HBM by host: share in use',
  description: 'The fullest chip of each host, as a share of the smallest chip\'s memory.',
  unit: units.PercentUnit,
  thresholds: limits(0.9, 0.97),
  queries: [{
    expr: onHostsOfJob(
      `${byHost('chip_hbm_used_bytes', 'max')} / ${byHost('chip_hbm_total_bytes', 'min')}`,
    ),
    legend: '{{host}}',
  }],
  min: 0,
  max: 1,
});

const kPower = graph({
  title: 'Power and temperature over step time',
  description:
    'Power of all chips and temperature of the hottest one, with the median step time on the ' +
    'right. If steps get longer while power falls and temperature stays high, chips throttle.',
  unit: units.Watt,
  thresholds: kPlain,
  queries: [
    { expr: ofJob('chip_power_watts', 'sum'), legend: 'power' },
    { expr: ofJob('chip_temperature_celsius', 'max'), legend: 'hottest chip' },
    {
      expr: ofAttempt('max by (job) (tacho_job_step_time_seconds{job="$job",quantile="0.5"})'),
      legend: 'step time',
    },
  ],
  right: [
    { pattern: 'step time', unit: units.Seconds, label: 'step time' },
    { pattern: 'hottest chip', unit: units.Celsius, label: 'temperature' },
  ],
  min: 0,
});

const kClock = graph({
  title: 'Clock of the slowest chip, by host',
  description: 'A host with a lower clock than the others is throttled, or set up differently.',
  unit: units.Hertz,
  thresholds: kPlain,
  queries: [
    { expr: onHostsOfJob(byHost('chip_clock_hertz', 'min')), legend: '{{host}}' },
    { expr: ofJob('chip_clock_max_hertz', 'min'), legend: 'limit' },
  ],
});

const kTemperature = heatMap({
  title: 'Temperature by host',
  description: 'The hottest chip of each host.',
  unit: units.Celsius,
  thresholds: limits(80, 90),
  queries: [{
    expr: onHostsOfJob(byHost('chip_temperature_celsius', 'max')), legend: '{{host}}',
  }],
  min: 30,
  max: 95,
});

function errors(counter: string): string {
  return `max by (job) (increase(tacho_job_${counter}{job="$job",host="",stat="sum"}[5m]))`;
}

const kErrors = graph({
  title: 'Hardware errors',
  description: 'Errors in five minutes, by kind. Uncorrected ECC and XID errors mean a bad chip.',
  unit: units.Short,
  thresholds: kNone,
  showThresholds: true,
  decimals: 0,
  min: 0,
  queries: [
    { expr: errors('chip_ecc_uncorrected_total'), legend: 'ECC, uncorrected' },
    { expr: errors('chip_ecc_corrected_total'), legend: 'ECC, corrected' },
    { expr: errors('chip_xid_errors_total'), legend: 'XID' },
    { expr: errors('chip_link_errors_total'), legend: 'links' },
  ],
});

export const kChips: Section = {
  title: 'Chips',
  lines: [
    { height: 10, panels: [kDuty, kTemperature] },
    graphs(kPower, kErrors),
  ],
};

export const kHardware: Section = {
  title: 'HBM and clocks',
  lines: [{ height: 10, panels: [kHbmShare, kHbm] }, graphs(kClock)],
};
