#include "client/ring_backend.h"

namespace tacho::client {

std::string RingBackend::Create(const RingFileOptions& options) {
  std::string trouble = file_.Create(options);
  if (trouble.empty()) writer_.emplace(file_.base(), options.record_bytes);
  return trouble;
}

bool RingBackend::AddMetric(MetricType type, std::string_view name, std::string_view unit,
                            std::string_view help) {
  return writer_->AddMetric(type, name, unit, help);
}

bool RingBackend::AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                               std::span<const double> bounds) {
  return writer_->AddHistogram(name, unit, help, bounds);
}

bool RingBackend::AddAttribute(std::string_view key, std::string_view value) {
  return writer_->AddAttribute(key, value);
}

void RingBackend::AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
                         std::span<const double> values) {
  writer_->AddRow(time_unix_ns, step, values);
}

void RingBackend::AddHistogramState(uint32_t histogram, int64_t time_unix_ns,
                                    std::optional<int64_t> step, double sum,
                                    std::span<const uint64_t> counts) {
  writer_->AddHistogramState(histogram, time_unix_ns, step, sum, counts);
}

void RingBackend::AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                           std::string_view message, std::span<const Field> fields) {
  writer_->AddEvent(time_unix_ns, step, kind, message, fields);
}

void RingBackend::SetRefused(uint64_t refused) { writer_->SetRefused(refused); }

void RingBackend::Close() { writer_->SetClosed(); }

}  // namespace tacho::client
