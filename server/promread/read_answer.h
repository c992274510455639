// The answers of Prometheus remote read: what a request selects, as bytes. No HTTP.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/promread/elsewhere.h"
#include "server/promread/read_request.h"
#include "server/promread/read_selection.h"

namespace tacho::server::promread {

// The longest answer in the form SAMPLES, before it is packed: some 7 million samples. It is packed
// as it is written, and has to be in memory as a whole then.
inline constexpr size_t kMaxSamplesBytes = size_t{128} << 20;
// The same for all such answers that are made at one time.
inline constexpr size_t kMaxHeldBytes = size_t{256} << 20;
// A frame of the other form is sent once its chunks are so long. Prometheus' own server cuts a
// series at 1 MiB (storage.remote.read-max-bytes-in-frame), but its reader makes a series of each
// frame (storage/remote/codec.go: chunkedSeriesSet), and then has several of the same labels. So a
// series goes on in a second frame only where memory asks for it: after a million samples or more.
// The reader takes frames of 50 MB.
inline constexpr size_t kFrameBytes = size_t{8} << 20;

// The bytes of answers that are made now. Thread-safe.
class HeldBytes {
 public:
  // Whether there is room for them; then they count until Release().
  bool Take(size_t bytes) {
    if (bytes_.fetch_add(bytes) + bytes <= kMaxHeldBytes) return true;
    bytes_ -= bytes;
    return false;
  }
  void Release(size_t bytes) { bytes_ -= bytes; }

 private:
  std::atomic<size_t> bytes_ = 0;
};

struct ReadWorld {
  SelectionWorld selection;
  uint64_t max_samples = UINT64_MAX;  // Of all queries of the request.
  HeldBytes* held = nullptr;          // Not owned.
  size_t frame_bytes = kFrameBytes;   // Less only in tests.
  // Asks other members of the cluster about a query. Null: there are none, or none is to be asked.
  std::function<absl::StatusOr<MemberAnswers<v1::MemberReadResponse>>(const ReadQuery&)> elsewhere =
      nullptr;
};

// Both forms have the series with samples in the query's time, in the order of their labels: the
// last sample of each millisecond, ascending, bits as recorded. Those of other members are put in
// their places. They begin with RESOURCE_EXHAUSTED
// and others as SelectSeries(), and
//   RESOURCE_EXHAUSTED (TOO_LARGE)  more than max_samples; the text says how to narrow.
// Each returns how many samples it has.

// A prometheus.ReadResponse in Snappy's block format, which replaces *packed.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  also: more than kMaxSamplesBytes.
//   UNAVAILABLE (OVERLOADED)        other answers fill kMaxHeldBytes: try again.
absl::StatusOr<uint64_t> MakeSamplesAnswer(const ReadWorld& world, const ReadRequest& request,
                                           std::string* packed);

// The frames of a stream of prometheus.ChunkedReadResponse, one series each, which go to `send`:
//    | length of the message, a varint | CRC-32C of it, 4 bytes big-endian | message |
// (prometheus/prometheus, storage/remote/chunked.go). A long series goes on in the next frame. The
// first error of `send` ends the answer and is returned.
absl::StatusOr<uint64_t> MakeChunksAnswer(const ReadWorld& world, const ReadRequest& request,
                                          absl::FunctionRef<absl::Status(std::string)> send);

// One frame.
std::string FrameOf(const std::string& message);

}  // namespace tacho::server::promread
