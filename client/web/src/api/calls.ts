// One typed function for each call of tacho.v1.Query and tacho.v1.View that the page makes.
import type { MatrixData } from '../chart/types';
import { ms } from './json';
import { live } from './live';
import { RpcError, streamJson, streamProto, unary } from './rpc';
import type * as t from './types';
import { MatrixDecoder, RangeDecoder, encodeMatrix, encodeRange, type Series } from './wire';

const QUERY = 'tacho.v1.Query/';
const VIEW = 'tacho.v1.View/';

type Signal = AbortSignal | undefined;

function ask<Request, Response>(method: string) {
  return (request: Request, signal?: Signal, priority = 0): Promise<Response> =>
    unary<Response>(method, request, { signal, priority });
}

export const listJobs = ask<t.ListJobsRequest, t.ListJobsResponse>(`${QUERY}ListJobs`);
export const getJob = ask<t.GetJobRequest, t.GetJobResponse>(`${QUERY}GetJob`);
// null: the job was removed after it was listed.
export async function jobIfThere(request: t.GetJobRequest, signal?: Signal): Promise<t.GetJobResponse | null> {
  return getJob(request, signal).catch((error: unknown) => {
    if (error instanceof RpcError && error.code === 'not_found') return null;
    throw error;
  });
}

export const listMetrics = ask<t.ListMetricsRequest, t.ListMetricsResponse>(`${QUERY}ListMetrics`);
export const labelValues = ask<t.LabelValuesRequest, t.LabelValuesResponse>(`${QUERY}LabelValues`);
export const firstNonFinite = ask<t.FirstNonFiniteRequest, t.FirstNonFiniteResponse>(`${QUERY}FirstNonFinite`);
export const goodput = ask<t.GoodputRequest, t.GoodputResponse>(`${QUERY}Goodput`);
export const cardinality = ask<t.CardinalityRequest, t.CardinalityResponse>(`${QUERY}Cardinality`);
export const conditions = ask<t.ConditionsRequest, t.ConditionsResponse>(`${QUERY}Conditions`);

// These say what time it is by the collector's clock.
function timed<Request, Response extends { clockUnixNs?: t.Int64 }>(method: string) {
  return async (request: Request, signal?: Signal, priority = 0): Promise<Response> => {
    const answer = await unary<Response>(method, request, { signal, priority });
    const clock = ms(answer.clockUnixNs);
    if (clock !== null) live.clock(clock);
    return answer;
  };
}

export const fleet = timed<t.FleetRequest, t.FleetResponse>(`${VIEW}Fleet`);
export const whoAmI = timed<t.WhoAmIRequest, t.WhoAmIResponse>(`${VIEW}WhoAmI`);
export const collector = timed<t.CollectorRequest, t.CollectorResponse>(`${VIEW}Collector`);

// All messages of a stream, in order.
async function all<Message>(method: string, request: unknown, signal: Signal, priority: number): Promise<Message[]> {
  const messages: Message[] = [];
  await streamJson<Message>(method, request, (message) => messages.push(message), { signal, priority });
  return messages;
}

export async function listSeries(request: t.ListSeriesRequest, signal?: Signal, priority = 0): Promise<t.SeriesInfo[]> {
  const answers = await all<t.ListSeriesResponse>(`${QUERY}ListSeries`, request, signal, priority);
  return answers.flatMap((answer) => answer.series ?? []);
}

export async function latest(request: t.LatestRequest, signal?: Signal, priority = 0): Promise<t.LatestSample[]> {
  const answers = await all<t.LatestResponse>(`${QUERY}Latest`, request, signal, priority);
  return answers.flatMap((answer) => answer.samples ?? []);
}

export async function listEvents(request: t.ListEventsRequest, signal?: Signal, priority = 0): Promise<t.RecordedEvent[]> {
  const answers = await all<t.ListEventsResponse>(`${QUERY}ListEvents`, request, signal, priority);
  return answers.flatMap((answer) => answer.events ?? []);
}

export interface Comparison {
  subjects: t.CompareSubjects;
  metrics: t.CompareMetric[];
}

export async function compare(request: t.CompareRequest, signal?: Signal, priority = 0): Promise<Comparison> {
  const answers = await all<t.CompareResponse>(`${QUERY}Compare`, request, signal, priority);
  const pieces = answers.flatMap((answer) => [answer, ...(answer.more ?? [])]);
  return {
    subjects: pieces.find((piece) => piece.subjects)?.subjects ?? {},
    metrics: pieces.flatMap((piece) => piece.metric ?? []),
  };
}

export async function integrate(request: t.IntegrateRequest, signal?: Signal, priority = 0): Promise<t.Integral[]> {
  const answers = await all<t.IntegrateResponse>(`${QUERY}Integrate`, request, signal, priority);
  return answers.flatMap((answer) => answer.integrals ?? []);
}

export async function range(request: t.RangeRequest, signal?: Signal, priority = 0): Promise<Series[]> {
  const decoder = new RangeDecoder();
  await streamProto(`${QUERY}Range`, encodeRange(request), (bytes) => decoder.add(bytes), { signal, priority });
  return decoder.done();
}

export async function matrix(request: t.MatrixRequest, signal?: Signal, priority = 0): Promise<MatrixData> {
  const decoder = new MatrixDecoder(request.axis !== 'AXIS_STEP');
  await streamProto(`${VIEW}Matrix`, encodeMatrix(request), (bytes) => decoder.add(bytes), { signal, priority });
  return decoder.done();
}
