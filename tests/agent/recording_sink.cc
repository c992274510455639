#include "tests/agent/recording_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tacho::agent::testing {

double StoredSample::value() const {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

absl::StatusOr<uint32_t> RecordingSink::DefineLayout(const v1::Layout& layout) {
  const auto [known, is_new] =
      handles_.try_emplace(layout.SerializeAsString(), static_cast<uint32_t>(layouts.size()));
  if (is_new) layouts.push_back(layout);
  return known->second;
}

absl::Status RecordingSink::Take(const Checkpoint& checkpoint) {
  if (room_ <= 0) return absl::UnavailableError("the spool is full");
  --room_;
  if (checkpoint.key.empty()) return absl::OkStatus();
  if (checkpoint.value.empty()) {
    checkpoints.erase(checkpoint.key);
  } else {
    checkpoints[checkpoint.key] = checkpoint.value;
  }
  return absl::OkStatus();
}

absl::Status RecordingSink::AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                                       std::span<const int64_t> steps,
                                       std::span<const double> values,
                                       const Checkpoint& checkpoint) {
  const v1::Layout& definition = layouts.at(layout);
  const size_t width = static_cast<size_t>(definition.series_size());
  EXPECT_EQ(values.size(), times_unix_ns.size() * width);
  EXPECT_EQ(steps.size(), definition.has_steps() ? times_unix_ns.size() : 0);
  EXPECT_FALSE(times_unix_ns.empty());
  if (absl::Status status = Take(checkpoint); !status.ok()) return status;
  largest_batch_rows = std::max(largest_batch_rows, times_unix_ns.size());
  for (size_t row = 0; row < times_unix_ns.size(); ++row) {
    for (size_t column = 0; column < width; ++column) {
      const v1::Layout::Series& series = definition.series(static_cast<int>(column));
      StoredSample sample;
      sample.job = definition.source().job();
      if (definition.source().has_task()) sample.task = definition.source().task();
      sample.attempt = definition.source().attempt();
      sample.host = definition.source().host();
      sample.metric = series.metric().name();
      for (const v1::Label& label : series.labels()) {
        absl::StrAppend(&sample.label, label.name(), "=", label.value());
      }
      sample.time_ns = times_unix_ns[row];
      if (!steps.empty()) sample.step = steps[row];
      std::memcpy(&sample.bits, &values[row * width + column], sizeof(sample.bits));
      samples.push_back(std::move(sample));
    }
  }
  return absl::OkStatus();
}

absl::Status RecordingSink::AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) {
  if (absl::Status status = Take(checkpoint); !status.ok()) return status;
  events.push_back(event);
  return absl::OkStatus();
}

absl::Status RecordingSink::AppendAttributes(const v1::Attributes& message,
                                             const Checkpoint& checkpoint) {
  if (absl::Status status = Take(checkpoint); !status.ok()) return status;
  attributes.push_back(message);
  return absl::OkStatus();
}

absl::Status RecordingSink::WriteCheckpoint(const Checkpoint& checkpoint) {
  return Take(checkpoint);
}

std::string RecordingSink::ReadCheckpoint(absl::string_view key) const {
  const auto found = checkpoints.find(std::string(key));
  return found == checkpoints.end() ? std::string() : found->second;
}

}  // namespace tacho::agent::testing
