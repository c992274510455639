// Reads events from logs of OpenTelemetry (opentelemetry.io/docs/specs/otel/logs/data-model, and
// opentelemetry/proto/logs/v1/logs.proto of open-telemetry/opentelemetry-proto). Only records whose
// event name is ours are events; all others are rejected.
//
//   event_name, or the attribute event.name   the kind, as EventKindOf() says
//   time_unix_nano, else the observed time    the time; a record with neither happens now
//   body                                      the message, as text
//   attribute "step", a whole number from 0   the step
//   other attributes                          fields, as text
//   attributes of the resource                the job, host, task and attempt, by the mapping
//
// Messages and the values of fields are cut where the limits of events cut in (proto/tacho/v1/
// ingest.proto): the end of a process is worth keeping even if its stack trace is long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/otlp_logs_service.pb.h"
#include "server/interop/formats/foreign_events.h"

namespace tacho::server::interop {

// The kind of event that an event name stands for; nullopt: the name is not ours. Ours are the
// kinds of attempts in docs/notation.md as they are, and any kind behind "tacho.". Kinds that the
// collector alone writes are nobody else's.
std::optional<std::string> EventKindOf(absl::string_view event_name);

struct OtlpLogs {
  ForeignEvents events;
  uint64_t rejected = 0;  // Records that are no events, or cannot be read,
  std::string problem;    // and why the first of them is not taken.
};

// `request` is not trusted. The result does not point into it. `now_ns` is in nanoseconds since the
// Unix epoch.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  as ForeignEvents::CheckSize().
absl::StatusOr<OtlpLogs> ReadOtlpLogs(
    const opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest& request,
    const std::vector<std::string>& resource_attributes, int64_t now_ns);

}  // namespace tacho::server::interop
