// Logs of OpenTelemetry come from whoever may write. The first byte says whether the rest is
// packed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/base/check.h"
#include "proto/base/utf8.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/otlp_logs.h"

namespace interop = tacho::server::interop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string body(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 1) != 0) {
    auto unpacked = interop::UnpackGzip(body, size_t{1} << 20);
    if (!unpacked.ok()) return 0;
    body = *std::move(unpacked);
  }
  opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest request;
  if (!request.ParseFromString(body)) return 0;
  const auto result = interop::ReadOtlpLogs(request, {"service.name"}, 1);
  if (!result.ok()) return 0;
  size_t records = 0;
  for (const auto& resource : request.resource_logs()) {
    for (const auto& scope : resource.scope_logs()) {
      records += static_cast<size_t>(scope.log_records_size());
    }
  }
  TACHO_CHECK(result->events.events.size() + result->rejected == records);
  TACHO_CHECK((result->rejected == 0) == result->problem.empty());
  for (const auto& one : result->events.events) {
    TACHO_CHECK(one.source < result->events.sources.size());
    TACHO_CHECK(!one.event.kind().empty() && one.event.time_unix_ns() > 0);
    TACHO_CHECK(one.event.message().size() <= 1024 && tacho::IsUtf8(one.event.message()));
    for (const auto& [name, value] : one.event.fields()) {
      TACHO_CHECK(value.size() <= 1024 && tacho::IsUtf8(value));
    }
  }
  return 0;
}
