// Puts definitions and records into a mapped ring. Internal to the writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "client/ring/ring_format.h"

namespace tacho::client {

// Used from one thread. Allocates nothing, makes no system call, reads nothing back from the ring
// (another process may have scribbled on it). At whatever instruction the process dies, the ring
// holds everything that was put in before, complete.
class RingWriter {
 public:
  // `base` is a new ring: all zero behind its RingHeader. Not owned.
  RingWriter(char* base, uint64_t record_bytes);

  // Texts are within the limits of the format. False if the definition area has no room for it.
  bool AddMetric(MetricType type, std::string_view name, std::string_view unit,
                 std::string_view help);
  bool AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                    std::span<const double> bounds);
  bool AddAttribute(std::string_view key, std::string_view value);

  // At most kMaxMetrics values, those of the metrics in the order in which they were added.
  void AddRow(int64_t time_unix_ns, std::optional<int64_t> step, std::span<const double> values);

  // One count more than the histogram has bounds.
  void AddHistogramState(uint32_t histogram, int64_t time_unix_ns, std::optional<int64_t> step,
                         double sum, std::span<const uint64_t> counts);

  using Field = std::pair<std::string_view, std::string_view>;
  // Texts and their number are within the limits of the format.
  void AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                std::string_view message, std::span<const Field> fields);

  void SetRefused(uint64_t refused);
  void SetClosed();

 private:
  // Where a record of `size` bytes goes, which nobody sees before Commit().
  char* Reserve(size_t size);
  void Announce(uint64_t end);
  RecordHeader HeaderOf(RecordKind kind, size_t size, size_t count, int64_t time_unix_ns,
                        std::optional<int64_t> step) const;
  void Commit(size_t size);
  void PutPadding(uint64_t size);
  bool AddDefinition(const DefinitionHeader& header, std::string_view name, std::string_view unit,
                     std::string_view text, std::span<const double> bounds = {});
  void Store(size_t cursor_offset, uint64_t value, std::memory_order order);

  char* const base_;
  char* const records_;
  const uint64_t mask_;
  uint64_t position_ = 0;  // Committed.
  uint64_t definitions_ = 0;
  uint64_t attribute_bytes_ = 0;
  uint64_t records_written_ = 0;
  uint64_t rows_written_ = 0;
};

}  // namespace tacho::client
