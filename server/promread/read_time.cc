#include "server/promread/read_time.h"

#include <limits>

namespace tacho::server::promread {

TimeSpan TimeSpanOf(const ReadQuery& query) {
  using Limits = std::numeric_limits<int64_t>;
  constexpr int64_t kFirstMs = Limits::min() / kNsPerMs;
  constexpr int64_t kLastMs = Limits::max() / kNsPerMs - 1;
  if (query.begin_ms > query.end_ms || query.begin_ms > kLastMs || query.end_ms < kFirstMs) {
    return {};
  }
  return {query.begin_ms < kFirstMs ? Limits::min() : query.begin_ms * kNsPerMs,
          query.end_ms > kLastMs ? Limits::max() : (query.end_ms + 1) * kNsPerMs};
}

}  // namespace tacho::server::promread
