#include "tests/bench/agents/row_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace tacho::bench {
namespace {

constexpr uint32_t kHosts = 16;
constexpr uint32_t kRowsOfHost = 256;

// Wider layouts than a host's repeat its columns with another label.
std::string SerializedSeries(uint32_t count) {
  v1::Layout layout;
  for (uint32_t i = 0; i < count; ++i) {
    const FleetSeries& column = FleetColumns()[i % kSeries];
    v1::Layout::Series* series = layout.add_series();
    series->mutable_metric()->set_name(column.metric->name);
    series->mutable_metric()->set_type(column.metric->type);
    series->mutable_metric()->set_unit(column.metric->unit);
    series->mutable_metric()->set_help(column.metric->help);
    const auto add_label = [series](const char* name, int64_t value) {
      v1::Label* label = series->add_labels();
      label->set_name(name);
      label->set_value(absl::StrCat(value));
    };
    if (column.chip >= 0) add_label("chip", column.chip);
    if (i >= kSeries) add_label("device", i / kSeries);
  }
  return layout.SerializeAsString();
}

}  // namespace

RowSource::RowSource(const RowShape& shape)
    : shape_(shape), series_(SerializedSeries(shape.series)) {
  FleetOptions options;
  options.interval_ns = 1'000'000'000;
  for (uint32_t i = 0; i < kHosts; ++i) {
    FleetHost host(options, i);
    for (uint32_t row = 0; row < kRowsOfHost; ++row) {
      const FleetRow made = host.NextRow();
      std::vector<double>& values = values_.emplace_back(shape.series);
      for (uint32_t column = 0; column < shape.series; ++column) {
        values[column] = made.values[column % kSeries];
      }
    }
  }
}

absl::string_view RowSource::Bytes() {
  message_.SerializeToString(&bytes_);
  return bytes_;
}

std::string RowSource::AgentId(uint32_t agent) const {
  return absl::StrFormat("fleet-agent-%06d", agent);
}

absl::string_view RowSource::Hello(uint32_t agent, uint64_t first_sequence) {
  v1::Hello* hello = message_.mutable_hello();
  hello->set_agent_id(AgentId(agent));
  hello->set_spool_generation(shape_.generation);
  hello->set_first_sequence(first_sequence);
  hello->set_version("fleet");
  hello->set_clock_unix_ns(absl::ToUnixNanos(absl::Now()));
  return Bytes();
}

absl::string_view RowSource::Layout(uint32_t agent, uint32_t layout) {
  v1::Layout head;
  head.set_id(layout);
  head.set_has_steps(true);
  head.mutable_source()->set_job(absl::StrFormat("fleet-%03d", agent / shape_.hosts_per_job));
  head.mutable_source()->set_task(agent % shape_.hosts_per_job * shape_.layouts + layout);
  head.mutable_source()->set_host(absl::StrFormat("host-%06d", agent));
  // Two halves of a serialized message, one after the other, are the message.
  std::string body = head.SerializeAsString() + series_;
  v1::ClientMessage empty;
  empty.mutable_layout();
  bytes_ = empty.SerializeAsString();
  bytes_.pop_back();  // The length, 0.
  for (size_t size = body.size();; size >>= 7) {
    bytes_.push_back(static_cast<char>(size < 128 ? size : (size & 127) | 128));
    if (size < 128) break;
  }
  bytes_ += body;
  return bytes_;
}

absl::string_view RowSource::Batch(uint32_t agent, uint64_t sequence) {
  const uint64_t index = sequence - 1;
  const uint64_t first_row = index / shape_.layouts * shape_.rows;
  const double interval_ns = 1e9 / shape_.rate;
  v1::Batch* batch = message_.mutable_batch();
  batch->Clear();
  batch->set_sequence(sequence);
  batch->set_layout(static_cast<uint32_t>(index % shape_.layouts));
  for (uint64_t row = first_row; row < first_row + shape_.rows; ++row) {
    batch->add_times_unix_ns(shape_.start_unix_ns +
                             static_cast<int64_t>(interval_ns * static_cast<double>(row)));
    batch->add_steps(static_cast<int64_t>(row));
    const auto& values = values_[agent % kHosts * kRowsOfHost + (agent + row) % kRowsOfHost];
    batch->mutable_values()->Add(values.begin(), values.end());
  }
  return Bytes();
}

}  // namespace tacho::bench
