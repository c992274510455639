// Written by types.mjs from proto/tacho/v1; edit those files, then run build.sh.
//
// proto3 JSON leaves out what has its default: 0, "", false, an empty list.

// 64-bit integers are strings of digits: num() and ms() in json.ts read them.
export type Int64 = string | number;

// Or "NaN", "Infinity", "-Infinity": num() reads them.
export type Double = number | string;

export type MetricType =
  | 'METRIC_TYPE_UNSPECIFIED'
  | 'METRIC_TYPE_GAUGE'
  | 'METRIC_TYPE_COUNTER'
  | 'METRIC_TYPE_HISTOGRAM';

export interface Metric {
  name?: string;
  type?: MetricType;
  unit?: string;
  help?: string;
}

export interface Label {
  name?: string;
  value?: string;
}

export interface Source {
  job?: string;
  task?: number;
  attempt?: number;
  host?: string;
}

export interface SequenceRange {
  first?: Int64;
  last?: Int64;
}

export interface JobMarks {
  tags?: string[];
  group?: string;
  note?: string;
}

export interface ChangeMarksRequest {
  job?: string;
  addTags?: string[];
  removeTags?: string[];
  group?: string;
  note?: string;
}

export interface ChangeMarksResponse {
  marks?: JobMarks;
}

export type ConditionStatus =
  | 'CONDITION_STATUS_UNSPECIFIED'
  | 'CONDITION_STATUS_TRUE'
  | 'CONDITION_STATUS_FALSE'
  | 'CONDITION_STATUS_UNKNOWN';

export type ConditionSeverity =
  | 'CONDITION_SEVERITY_UNSPECIFIED'
  | 'CONDITION_SEVERITY_INFO'
  | 'CONDITION_SEVERITY_WARNING'
  | 'CONDITION_SEVERITY_CRITICAL';

export interface Condition {
  job?: string;
  attempt?: number;
  condition?: string;
  status?: ConditionStatus;
  severity?: ConditionSeverity;
  reason?: string;
  message?: string;
  sinceUnixNs?: Int64;
  changedUnixNs?: Int64;
  judgedUnixNs?: Int64;
  step?: Int64;
  figures?: ConditionFigure[];
  culprits?: ConditionCulprit[];
}

export interface ConditionFigure {
  name?: string;
  value?: Double;
  unit?: string;
}

export interface ConditionCulprit {
  task?: number;
  host?: string;
  chip?: string;
  metric?: string;
  step?: Int64;
  score?: Double;
}

export interface ConditionsRequest {
  job?: string;
  jobPattern?: string;
  conditions?: string[];
  statuses?: ConditionStatus[];
}

export interface ConditionsResponse {
  conditions?: Condition[];
  profiles?: JobProfile[];
}

export interface JobProfile {
  job?: string;
  profile?: string;
  automatic?: boolean;
  reason?: string;
  sinceUnixNs?: Int64;
}

export interface WatchConditionsRequest {
  job?: string;
  jobPattern?: string;
  conditions?: string[];
}

export interface WatchConditionsResponse {
  conditions?: Condition[];
  live?: boolean;
  clockUnixNs?: Int64;
}

export type GoodputBucket =
  | 'GOODPUT_BUCKET_UNSPECIFIED'
  | 'GOODPUT_BUCKET_PRODUCTIVE_STEP'
  | 'GOODPUT_BUCKET_INITIALIZING'
  | 'GOODPUT_BUCKET_COMPILING'
  | 'GOODPUT_BUCKET_RESTORING'
  | 'GOODPUT_BUCKET_DATA_WAIT'
  | 'GOODPUT_BUCKET_CHECKPOINT'
  | 'GOODPUT_BUCKET_EVALUATION'
  | 'GOODPUT_BUCKET_WASTED'
  | 'GOODPUT_BUCKET_STALLED'
  | 'GOODPUT_BUCKET_DOWN'
  | 'GOODPUT_BUCKET_OTHER'
  | 'GOODPUT_BUCKET_WAITING_FOR_OTHERS';

export interface GoodputRequest {
  job?: string;
  totalsOnly?: boolean;
  maxSpans?: number;
}

export interface GoodputResponse {
  job?: string;
  total?: Goodput;
  attempts?: AttemptGoodput[];
  steps?: StepFigures;
  attempt?: number;
  referenceTask?: number;
  stepMetric?: string;
  spans?: LedgerSpan[];
  spansJoined?: Int64;
  losses?: HostLosses;
}

export type LossReason =
  | 'LOSS_REASON_UNSPECIFIED'
  | 'LOSS_REASON_INPUT'
  | 'LOSS_REASON_COMPUTE'
  | 'LOSS_REASON_COMMUNICATION'
  | 'LOSS_REASON_CHECKPOINT';

export interface HostLosses {
  lostNs?: Int64;
  hosts?: HostLoss[];
  judgedSteps?: Int64;
}

export interface HostLoss {
  host?: string;
  lostNs?: Int64;
  reasons?: ReasonLoss[];
}

export interface ReasonLoss {
  reason?: LossReason;
  ns?: Int64;
}

export interface LedgerSpan {
  bucket?: GoodputBucket;
  beginUnixNs?: Int64;
  endUnixNs?: Int64;
  firstStep?: Int64;
  lastStep?: Int64;
  attempt?: number;
}

export interface Goodput {
  beginUnixNs?: Int64;
  endUnixNs?: Int64;
  wallNs?: Int64;
  buckets?: BucketTime[];
  goodputRatio?: Double;
  productiveSteps?: Int64;
  wastedSteps?: Int64;
  rewinds?: Int64;
}

export interface BucketTime {
  bucket?: GoodputBucket;
  ns?: Int64;
}

export interface AttemptGoodput {
  attempt?: number;
  goodput?: Goodput;
}

export interface StepFigures {
  sampled?: Int64;
  stepTimeMedianSeconds?: Double;
  stepTimeP90Seconds?: Double;
  stepTimeP99Seconds?: Double;
  stepTimeMeanSeconds?: Double;
  stepTimeMadSeconds?: Double;
  stepTimeIdealSeconds?: Double;
  mfuRatio?: Double;
  devicePeakFlops?: Double;
  devicePeakSource?: string;
  tokensPerSecond?: Double;
  lastStep?: Int64;
  plannedSteps?: Int64;
  progressRatio?: Double;
  remainingSeconds?: Double;
}

export type Op =
  | 'OP_UNSPECIFIED'
  | 'OP_EQUAL'
  | 'OP_NOT_EQUAL'
  | 'OP_MATCHES'
  | 'OP_NOT_MATCHES';

export interface Matcher {
  label?: string;
  op?: Op;
  value?: string;
}

export interface Selector {
  job?: string;
  metrics?: string[];
  matchers?: Matcher[];
  part?: HostPart;
}

export interface HostPart {
  part?: number;
  parts?: number;
}

export interface TimeRange {
  beginUnixNs?: Int64;
  endUnixNs?: Int64;
}

export interface StepRange {
  begin?: Int64;
  end?: Int64;
}

export type Attempts =
  | 'ATTEMPTS_UNSPECIFIED'
  | 'ATTEMPTS_ALL'
  | 'ATTEMPTS_EFFECTIVE'
  | 'ATTEMPTS_LATEST';

export type JobState =
  | 'JOB_STATE_UNSPECIFIED'
  | 'JOB_STATE_RUNNING'
  | 'JOB_STATE_SILENT'
  | 'JOB_STATE_ENDED'
  | 'JOB_STATE_REPLACED';

export interface ListJobsRequest {
  namePattern?: string;
  seenWithinNs?: Int64;
  pageSize?: number;
  pageToken?: string;
  time?: TimeRange;
  states?: JobState[];
  matchers?: Matcher[];
  tags?: string[];
  group?: string;
}

export interface ListJobsResponse {
  jobs?: Job[];
  nextPageToken?: string;
}

export interface Job {
  name?: string;
  firstSeenUnixNs?: Int64;
  lastSeenUnixNs?: Int64;
  lastStep?: Int64;
  attempts?: number;
  tasks?: number;
  hosts?: number;
  series?: Int64;
  state?: JobState;
  metrics?: number;
  refusedSamples?: Int64;
  marks?: JobMarks;
}

export interface JobRefusal {
  reason?: string;
  samples?: Int64;
  example?: string;
  detail?: string;
  lastUnixNs?: Int64;
}

export interface GetJobRequest {
  job?: string;
  maxEntities?: number;
  part?: HostPart;
}

export interface GetJobResponse {
  job?: Job;
  attempts?: Attempt[];
  tasks?: Task[];
  metrics?: Metric[];
  hosts?: Host[];
  chips?: Chip[];
  incarnations?: Incarnation[];
  timeline?: EffectiveSpan[];
  chipsTotal?: Int64;
  incarnationsTotal?: Int64;
  refusals?: JobRefusal[];
}

export interface Attempt {
  attempt?: number;
  firstSeenUnixNs?: Int64;
  lastSeenUnixNs?: Int64;
  firstStep?: Int64;
  lastStep?: Int64;
  attributes?: Record<string, string>;
  state?: JobState;
  endedUnixNs?: Int64;
  endMessage?: string;
  endFields?: Record<string, string>;
  superseded?: StepRange[];
  tasks?: number;
  hosts?: number;
}

export interface EffectiveSpan {
  firstStep?: Int64;
  lastStep?: Int64;
  attempt?: number;
}

export interface Host {
  name?: string;
  firstSeenUnixNs?: Int64;
  lastSeenUnixNs?: Int64;
  tasks?: number[];
  chips?: number;
  series?: Int64;
}

export interface Chip {
  host?: string;
  chip?: string;
  task?: number;
  series?: Int64;
  lastSeenUnixNs?: Int64;
  firstSeenUnixNs?: Int64;
}

export interface Incarnation {
  attempt?: number;
  task?: number;
  host?: string;
  series?: Int64;
}

export interface Task {
  task?: number;
  host?: string;
  attempt?: number;
  lastSeenUnixNs?: Int64;
  lastStep?: Int64;
  series?: Int64;
  firstSeenUnixNs?: Int64;
  state?: JobState;
  endedUnixNs?: Int64;
  endMessage?: string;
  endFields?: Record<string, string>;
}

export interface ListMetricsRequest {
  job?: string;
  namePattern?: string;
  part?: HostPart;
}

export interface ListMetricsResponse {
  metrics?: MetricUse[];
}

export interface MetricUse {
  metric?: Metric;
  series?: Int64;
  labels?: string[];
}

export interface LabelValuesRequest {
  selector?: Selector;
  label?: string;
  maxValues?: Int64;
}

export interface LabelValuesResponse {
  values?: LabelValue[];
}

export interface LabelValue {
  value?: string;
  series?: Int64;
}

export interface SeriesInfo {
  metric?: Metric;
  job?: string;
  task?: number;
  host?: string;
  labels?: Label[];
}

export interface ListSeriesRequest {
  selector?: Selector;
  maxSeries?: Int64;
}

export interface ListSeriesResponse {
  series?: SeriesInfo[];
}

export type AggregateFunction =
  | 'AGGREGATE_FUNCTION_UNSPECIFIED'
  | 'AGGREGATE_FUNCTION_SUM'
  | 'AGGREGATE_FUNCTION_AVG'
  | 'AGGREGATE_FUNCTION_MIN'
  | 'AGGREGATE_FUNCTION_MAX'
  | 'AGGREGATE_FUNCTION_P50'
  | 'AGGREGATE_FUNCTION_P90'
  | 'AGGREGATE_FUNCTION_P99'
  | 'AGGREGATE_FUNCTION_COUNT'
  | 'AGGREGATE_FUNCTION_STDDEV'
  | 'AGGREGATE_FUNCTION_QUANTILE';

export type CounterFunction =
  | 'COUNTER_FUNCTION_UNSPECIFIED'
  | 'COUNTER_FUNCTION_INCREASE'
  | 'COUNTER_FUNCTION_RATE';

export interface Aggregation {
  function?: AggregateFunction;
  by?: string[];
  quantile?: Double;
}

export type Axis =
  | 'AXIS_UNSPECIFIED'
  | 'AXIS_TIME'
  | 'AXIS_STEP';

export interface RangeRequest {
  selector?: Selector;
  time?: TimeRange;
  steps?: StepRange;
  axis?: Axis;
  maxPoints?: number;
  aggregation?: Aggregation;
  maxSeries?: Int64;
  maxSamples?: Int64;
  attempts?: Attempts;
  counter?: CounterFunction;
  bucketValues?: BucketValue[];
  packed?: boolean;
  grid?: GivenGrid;
}

export interface GivenGrid {
  firstUnixNs?: Int64;
  lastUnixNs?: Int64;
}

export type BucketValue =
  | 'BUCKET_VALUE_UNSPECIFIED'
  | 'BUCKET_VALUE_MIN'
  | 'BUCKET_VALUE_MAX'
  | 'BUCKET_VALUE_AVG'
  | 'BUCKET_VALUE_FIRST'
  | 'BUCKET_VALUE_LAST'
  | 'BUCKET_VALUE_SUM';

export interface RangeResponse {
  seriesIndex?: number;
  series?: SeriesInfo;
  points?: Points;
  buckets?: Buckets;
  more?: RangeResponse[];
  bucketWidth?: Int64;
}

export interface Points {
  timesUnixNs?: Int64[];
  steps?: Int64[];
  values?: Double[];
  attempts?: number[];
}

export interface Buckets {
  firstTimesUnixNs?: Int64[];
  lastTimesUnixNs?: Int64[];
  firstSteps?: Int64[];
  lastSteps?: Int64[];
  min?: Double[];
  max?: Double[];
  avg?: Double[];
  first?: Double[];
  last?: Double[];
  counts?: Int64[];
  nonFinite?: Int64[];
  sum?: Double[];
}

export interface IntegrateRequest {
  selector?: Selector;
  time?: TimeRange;
  steps?: StepRange;
  attempts?: Attempts;
  maxGapNs?: Int64;
  sum?: boolean;
  by?: string[];
  maxSeries?: Int64;
}

export interface IntegrateResponse {
  integrals?: Integral[];
}

export interface Integral {
  series?: SeriesInfo;
  seriesCount?: Int64;
  value?: Double;
  unit?: string;
  coveredNs?: Int64;
  notCoveredNs?: Int64;
  gaps?: Int64;
  count?: Int64;
  nonFinite?: Int64;
  firstUnixNs?: Int64;
  lastUnixNs?: Int64;
}

export interface LatestRequest {
  selector?: Selector;
  maxSeries?: Int64;
}

export interface LatestResponse {
  samples?: LatestSample[];
}

export interface LatestSample {
  series?: SeriesInfo;
  timeUnixNs?: Int64;
  step?: Int64;
  attempt?: number;
  value?: Double;
}

export interface ListEventsRequest {
  job?: string;
  time?: TimeRange;
  kind?: string;
  kinds?: string[];
  steps?: StepRange;
  attempts?: Attempts;
  newest?: number;
}

export interface ListEventsResponse {
  events?: RecordedEvent[];
}

export interface RecordedEvent {
  source?: Source;
  timeUnixNs?: Int64;
  step?: Int64;
  kind?: string;
  message?: string;
  fields?: Record<string, string>;
}

export interface WatchRequest {
  selector?: Selector;
  beginUnixNs?: Int64;
  events?: boolean;
  maxSeries?: Int64;
}

export interface WatchResponse {
  series?: WatchedSeries;
  samples?: WatchedSamples;
  event?: RecordedEvent;
  live?: WatchMark;
  alive?: WatchMark;
}

export interface WatchedSeries {
  index?: number;
  series?: SeriesInfo;
}

export interface WatchedSamples {
  index?: number;
  points?: Points;
}

export interface WatchMark {
  clockUnixNs?: Int64;
}

export interface Subject {
  job?: string;
  attempt?: number;
  attempts?: Attempts;
}

export type Alignment =
  | 'ALIGNMENT_UNSPECIFIED'
  | 'ALIGNMENT_STEP'
  | 'ALIGNMENT_ELAPSED';

export interface CompareRequest {
  subjects?: Subject[];
  metrics?: string[];
  matchers?: Matcher[];
  alignment?: Alignment;
  steps?: StepRange;
  maxPoints?: number;
  aggregation?: Aggregation;
  packed?: boolean;
  comparedValues?: ComparedValue[];
}

export type ComparedValue =
  | 'COMPARED_VALUE_UNSPECIFIED'
  | 'COMPARED_VALUE_AVG'
  | 'COMPARED_VALUE_MIN'
  | 'COMPARED_VALUE_MAX'
  | 'COMPARED_VALUE_DIFFERENCE';

export interface CompareResponse {
  subjects?: CompareSubjects;
  metric?: CompareMetric;
  more?: CompareResponse[];
}

export interface CompareSubjects {
  subjects?: ComparedSubject[];
  attributes?: AttributeDifference[];
  equalAttributes?: number;
}

export interface ComparedSubject {
  job?: string;
  attempts?: number[];
  firstUnixNs?: Int64;
  lastUnixNs?: Int64;
  firstStep?: Int64;
  lastStep?: Int64;
}

export interface AttributeDifference {
  name?: string;
  values?: string[];
}

export interface CompareSubjectRequest {
  compare?: CompareRequest;
  part?: ComparedPart;
  maxSeries?: Int64;
  originUnixNs?: Int64;
  firstPosition?: Int64;
  lastPosition?: Int64;
  buckets?: number;
  figures?: boolean;
  growth?: boolean;
}

export type ComparedPart =
  | 'COMPARED_PART_UNSPECIFIED'
  | 'COMPARED_PART_SERIES'
  | 'COMPARED_PART_ORIGIN'
  | 'COMPARED_PART_EXTENT'
  | 'COMPARED_PART_PLACES';

export interface Extent {
  first?: Int64;
  last?: Int64;
}

export interface Places {
  positions?: Int64[];
  values?: Double[];
  lowest?: Double[];
  highest?: Double[];
  counts?: Int64[];
  nonFinite?: Int64[];
}

export interface Figures {
  count?: Int64;
  nonFinite?: Int64;
  min?: Double;
  max?: Double;
  sum?: Double;
  sumRest?: Double;
  first?: Double;
  firstPosition?: Int64;
  last?: Double;
  lastPosition?: Int64;
  increase?: Double;
  rate?: Double;
}

export interface CompareSubjectResponse {
  metrics?: Metric[];
  series?: Int64;
  attributes?: Record<string, string>;
  described?: ComparedSubject;
  extent?: Extent;
  places?: Places;
  figures?: Figures;
}

export interface CompareMetric {
  metric?: Metric;
  positions?: Int64[];
  columns?: ComparedColumn[];
}

export interface ComparedColumn {
  avg?: Double[];
  min?: Double[];
  max?: Double[];
  counts?: Int64[];
  nonFinite?: Int64[];
  difference?: Double[];
  summary?: ComparedSummary;
}

export interface ComparedSummary {
  count?: Int64;
  nonFinite?: Int64;
  min?: Double;
  max?: Double;
  avg?: Double;
  last?: Double;
  lastPosition?: Int64;
  shared?: Int64;
  meanDifference?: Double;
  maxDifference?: Double;
  relativeDifference?: Double;
  first?: Double;
  firstPosition?: Int64;
  increase?: Double;
  rate?: Double;
}

export interface FirstNonFiniteRequest {
  selector?: Selector;
  time?: TimeRange;
  steps?: StepRange;
  attempts?: Attempts;
  maxSeries?: number;
}

export interface FirstNonFiniteResponse {
  spread?: NonFinite[];
  seriesTurned?: Int64;
  seriesExamined?: Int64;
  samplesExamined?: Int64;
}

export interface NonFinite {
  series?: SeriesInfo;
  timeUnixNs?: Int64;
  step?: Int64;
  attempt?: number;
  value?: Double;
  lastFinite?: Double;
  lastFiniteUnixNs?: Int64;
  lastFiniteStep?: Int64;
  nonFinite?: Int64;
  finiteAfter?: Int64;
}

export interface ExportRequest {
  selector?: Selector;
  time?: TimeRange;
  steps?: StepRange;
  attempts?: Attempts;
}

export interface ExportResponse {
  job?: GetJobResponse;
  event?: RecordedEvent;
  series?: WatchedSeries;
  samples?: WatchedSamples;
  end?: ExportEnd;
}

export interface ExportEnd {
  series?: Int64;
  samples?: Int64;
  events?: Int64;
}

export interface CardinalityRequest {
  job?: string;
  top?: number;
}

export interface CardinalityResponse {
  totals?: CardinalityUse[];
  jobs?: CardinalityUse[];
  metrics?: CardinalityUse[];
  labels?: CardinalityUse[];
  jobsLeftOut?: Int64;
  refusals?: CardinalityRefusal[];
}

export interface CardinalityUse {
  job?: string;
  name?: string;
  used?: Int64;
  limit?: Int64;
}

export interface CardinalityRefusal {
  job?: string;
  name?: string;
  limit?: string;
  action?: string;
  series?: Int64;
  tooMany?: Int64;
  example?: string;
  detail?: string;
  lastUnixNs?: Int64;
}

export interface FleetRequest {
  namePattern?: string;
  states?: JobState[];
  matchers?: Matcher[];
  tags?: string[];
  group?: string;
  sinceRevision?: Int64;
  sparkPoints?: number;
  maxJobs?: number;
  attributes?: string[];
  hosts?: boolean;
}

export interface FleetResponse {
  revision?: Int64;
  clockUnixNs?: Int64;
  complete?: boolean;
  jobs?: FleetJob[];
  gone?: string[];
  totals?: FleetTotals;
  leftOut?: number;
  hosts?: FleetHost[];
}

export interface FleetHost {
  name?: string;
  chips?: number;
  used?: boolean;
}

export interface FleetTotals {
  jobs?: number;
  running?: number;
  silent?: number;
  ended?: number;
  critical?: number;
  warning?: number;
  goodputRatio?: Double;
  chips?: number;
  chipsSick?: number;
  chipsIdle?: number;
  productiveSeconds?: Double;
  wallSeconds?: Double;
}

export interface FleetJob {
  job?: Job;
  attempt?: number;
  steps?: StepFigures;
  goodputRatio?: Double;
  conditions?: Condition[];
  conditionsTrue?: number;
  stepTimes?: Double[];
  attributes?: Record<string, string>;
  chips?: number;
  rank?: Double;
}

export interface MatrixRequest {
  selector?: Selector;
  rows?: string;
  axis?: Axis;
  time?: TimeRange;
  steps?: StepRange;
  attempts?: Attempts;
  maxColumns?: number;
  value?: BucketValue;
  worst?: number;
  counter?: CounterFunction;
}

export interface MatrixResponse {
  head?: MatrixHead;
  rows?: MatrixRows;
}

export interface MatrixHead {
  metric?: Metric;
  firstPosition?: Int64;
  width?: Int64;
  columns?: number;
  median?: Double[];
  low?: Double[];
  high?: Double[];
  rowsTotal?: Int64;
  samples?: Int64;
}

export interface MatrixRows {
  rows?: MatrixRow[];
  values?: Double[];
  nonFinite?: number[];
}

export interface MatrixRow {
  task?: number;
  host?: string;
  chip?: string;
  label?: string;
  firstColumn?: number;
  lastColumn?: number;
  holes?: number;
  score?: Double;
  nonFinite?: number;
}

export type WhoAmIRequest = Record<string, never>;

export interface WhoAmIResponse {
  authentication?: boolean;
  name?: string;
  read?: boolean;
  write?: boolean;
  admin?: boolean;
  jobsPattern?: string;
  expiresUnixNs?: Int64;
  version?: string;
  clockUnixNs?: Int64;
  pageUrl?: string;
}

export type CollectorRequest = Record<string, never>;

export interface CollectorResponse {
  version?: string;
  startedUnixNs?: Int64;
  clockUnixNs?: Int64;
  notReady?: string;
  draining?: boolean;
  streams?: Int64;
  jobs?: Int64;
  series?: Int64;
  seriesLimit?: Int64;
  samplesAppended?: Int64;
  samplesRefused?: Int64;
  openRows?: Int64;
  openBytes?: Int64;
  journalEntries?: Int64;
  journalBytes?: Int64;
  queuedBytes?: Int64;
  partitions?: Int64;
  diskBytes?: Int64;
  diskFreeBytes?: Int64;
  diskTotalBytes?: Int64;
  memoryBytes?: Int64;
  retentionNs?: Int64;
  queries?: number;
  queriesLimit?: number;
  watches?: number;
  watchesLimit?: number;
  running?: RunningQuery[];
}

export interface RunningQuery {
  method?: string;
  caller?: string;
  peer?: string;
  job?: string;
  beganUnixNs?: Int64;
  samplesRead?: Int64;
  watch?: boolean;
}
