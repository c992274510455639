// A recorder's backend that writes into a ring. Internal to the recorder.
#pragma once

#include <optional>
#include <string>

#include "client/recorder_backend.h"
#include "client/ring/ring_file.h"
#include "client/ring/ring_writer.h"

namespace tacho::client {

class RingBackend final : public RecorderBackend {
 public:
  // Returns an empty string, or what went wrong. To be called once, before everything else.
  std::string Create(const RingFileOptions& options);

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
  void Close() override;
  std::string path() const override { return file_.path(); }

 private:
  RingFile file_;
  std::optional<RingWriter> writer_;  // Set once the file is there.
};

}  // namespace tacho::client
