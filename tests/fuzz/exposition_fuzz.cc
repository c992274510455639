// What endpoints send: both text formats, and the HTTP around them. The first byte says which.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "agent/sources/fetch/http_response.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition.h"
#include "proto/exposition/exposition_scanner.h"

namespace {

using tacho::Exposition;

void Check(const absl::StatusOr<Exposition>& read) {
  if (!read.ok()) {
    if (read.status().message().empty()) std::abort();
    return;
  }
  for (const auto& sample : read->samples) {
    if (sample.name.empty() || sample.family >= read->families.size()) std::abort();
    for (const auto& [name, value] : sample.labels) {
      if (!tacho::IsUtf8(name) || !tacho::IsUtf8(value)) std::abort();
    }
  }
}

// The same comes out whether the text comes in pieces of the length or at once.
void CheckResponse(absl::string_view bytes, size_t piece) {
  constexpr uint64_t kMaxBody = 1000;
  tacho::agent::HttpResponseReader at_once(kMaxBody);
  tacho::agent::HttpResponseReader slow(kMaxBody);
  const bool ok = at_once.Feed(bytes).ok();
  bool slow_ok = true;
  while (!bytes.empty() && slow_ok && !slow.done()) {
    const size_t length = std::min(piece, bytes.size());
    slow_ok = slow.Feed(bytes.substr(0, length)).ok();
    bytes.remove_prefix(length);
  }
  if (ok != slow_ok || at_once.done() != slow.done()) std::abort();
  if (ok && at_once.response().body != slow.response().body) std::abort();
  if (at_once.response().body.size() > kMaxBody) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const tacho::ExpositionLimits limits{.max_samples = 100, .max_labels = 8};
  switch (data[0] % 4) {
    case 0:
      Check(tacho::ReadPrometheusText(bytes, limits));
      break;
    case 1:
      Check(tacho::ReadOpenMetricsText(bytes, limits));
      break;
    default:
      CheckResponse(bytes, 1 + data[0] / 4);
      break;
  }
  return 0;
}
