// Requests of remote read come from whoever may read. If the first byte is odd, the rest is packed
// first, so that mutations reach the message. What is read keeps its limits, and its times and
// matchers can be used whatever they are.
#include <snappy.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "server/promread/read_request.h"
#include "server/promread/read_time.h"
#include "server/promread/series_labels.h"

namespace promread = tacho::server::promread;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string body(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 1) != 0) {
    const std::string message = std::move(body);
    snappy::Compress(message.data(), message.size(), &body);
  }
  const auto request = promread::UnpackReadRequest(body);
  if (!request.ok()) {
    TACHO_CHECK(!request.status().message().empty());
    return 0;
  }
  TACHO_CHECK(request->queries.size() <= promread::kMaxQueries);
  const promread::LabelList labels = {{"__name__", "loss"}, {"job", "x"}};
  for (const promread::ReadQuery& query : request->queries) {
    const promread::TimeSpan span = promread::TimeSpanOf(query);
    TACHO_CHECK(span.begin_ns <= span.end_ns);
    TACHO_CHECK(query.matchers.size() <= promread::kMaxMatchers);
    promread::MatchesAll(query.matchers, labels);
  }
  return 0;
}
