// Puts definitions and records into a mapped ring. Internal to the writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client/ring/recorder_backend.h"
#include "client/ring/ring_file.h"
#include "client/ring/ring_format.h"

namespace tacho::client {

// Used from one thread. Allocates nothing, makes no system call, reads nothing back from the ring
// (another process may have scribbled on it). At whatever instruction the process dies, the ring
// holds everything that was put in before, complete.
class RingWriter final : public RecorderBackend {
 public:
  // `file` was created just now.
  explicit RingWriter(std::unique_ptr<RingFile> file);

  bool AddMetric(MetricType type, std::string_view name, std::string_view unit,
                 std::string_view help) override;
  bool AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                    std::span<const double> bounds) override;
  bool AddAttribute(std::string_view key, std::string_view value) override;

  void AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
              std::span<const double> values) override;
  void AddHistogramState(uint32_t histogram, int64_t time_unix_ns, std::optional<int64_t> step,
                         double sum, std::span<const uint64_t> counts) override;
  void AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                std::string_view message, std::span<const Field> fields) override;

  void SetRefused(uint64_t refused) override;
  void Close(const RecorderEnd& end) override;
  std::string path() const override { return file_->path(); }

 private:
  // Returns where a record of `size` bytes goes. No reader sees it before Commit().
  char* Reserve(size_t size);
  void Announce(uint64_t end);
  RecordHeader HeaderOf(RecordKind kind, size_t size, size_t count, int64_t time_unix_ns,
                        std::optional<int64_t> step) const;
  void Commit(size_t size);
  void PutPadding(uint64_t size);
  bool AddDefinition(const DefinitionHeader& header, std::string_view name, std::string_view unit,
                     std::string_view text, std::span<const double> bounds = {});
  void Store(size_t cursor_offset, uint64_t value, std::memory_order order);

  const std::unique_ptr<RingFile> file_;
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
