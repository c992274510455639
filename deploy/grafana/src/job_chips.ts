// Parts of one job's dashboard: what its chips do and suffer from.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { graphs, type Section } from './grid';
import { graph, heatMap, kNone, kPlain, limits } from './panel';
import { byHost, ofAttempt, ofHosts } from './query';

const kDuty = heatMap({
  title: 'Duty cycle by host',
  description:
    'Mean over the chips of each host. Blue is idle, red is busy. One line that turns blue is a ' +
    'host that hangs; all lines at once are a job that waits.',
  unit: units.PercentUnit,
  thresholds: limits(0.5, 0.2),
  queries: [{ expr: byHost('chip_duty_cycle_ratio', 'avg'), legend: '{{host}}' }],
  min: 0,
  max: 1,
});

const kHbm = graph({
  title: 'HBM',
  description: 'Memory of the chips: of the fullest chip of each host, and what a chip has.',
  unit: units.BytesIEC,
  thresholds: kPlain,
  queries: [
    { expr: byHost('chip_hbm_used_bytes', 'max'), legend: '{{host}}' },
    { expr: ofHosts('min', 'chip_hbm_total_bytes', 'min'), legend: 'limit' },
  ],
  min: 0,
});

const kHbmShare = heatMap({
  title: 'HBM by host: share in use',
  description: 'The fullest chip of each host, as a share of the smallest chip\'s memory.',
  unit: units.PercentUnit,
  thresholds: limits(0.9, 0.97),
  queries: [{
    expr: `${byHost('chip_hbm_used_bytes', 'max')} / ${byHost('chip_hbm_total_bytes', 'min')}`,
    legend: '{{host}}',
  }],
  min: 0,
  max: 1,
});

const kPower = graph({
  title: 'Power and temperature over step time',
  description:
    'Power of all chips and the hottest one, with the median step time on the right: steps that ' +
    'grow longer while power falls and temperature stays high are throttled.',
  unit: units.Watt,
  thresholds: kPlain,
  queries: [
    { expr: ofHosts('sum', 'chip_power_watts', 'sum'), legend: 'power' },
    { expr: ofHosts('max', 'chip_temperature_celsius', 'max'), legend: 'hottest chip' },
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
  description: 'A host whose clock is below the others\' is throttled, or set up differently.',
  unit: units.Hertz,
  thresholds: kPlain,
  queries: [{ expr: byHost('chip_clock_hertz', 'min'), legend: '{{host}}' }],
});

const kTemperature = heatMap({
  title: 'Temperature by host',
  description: 'The hottest chip of each host.',
  unit: units.Celsius,
  thresholds: limits(80, 90),
  queries: [{ expr: byHost('chip_temperature_celsius', 'max'), legend: '{{host}}' }],
  min: 30,
  max: 95,
});

const kErrors = graph({
  title: 'Hardware errors',
  description: 'Errors in five minutes, by kind. Uncorrected ECC and XID errors mean a bad chip.',
  unit: units.Short,
  thresholds: kNone,
  showThresholds: true,
  decimals: 0,
  min: 0,
  queries: [
    { expr: ofHosts('sum', 'chip_ecc_uncorrected_total', 'sum', '5m'), legend: 'ECC, uncorrected' },
    { expr: ofHosts('sum', 'chip_ecc_corrected_total', 'sum', '5m'), legend: 'ECC, corrected' },
    { expr: ofHosts('sum', 'chip_xid_errors_total', 'sum', '5m'), legend: 'XID' },
    { expr: ofHosts('sum', 'chip_link_errors_total', 'sum', '5m'), legend: 'links' },
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
