// Messages of a well-behaved agent, for tests to send as they are or to spoil.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tacho/config/v1/collector.pb.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// What the clock of these tests shows; batches below are of that second.
inline constexpr int64_t kNowNs = 1'700'000'000'000'000'000;

inline config::v1::Collector::Ingest SmallLimits() {
  config::v1::Collector::Ingest limits;
  limits.set_max_message_bytes(64 << 10);
  limits.set_max_rows_per_batch(100);
  limits.set_max_layouts_per_stream(4);
  limits.set_max_series_per_layout(8);
  limits.set_max_columns_per_stream(24);
  limits.set_max_future(absl::ToInt64Nanoseconds(absl::Minutes(10)));
  limits.set_max_streams(3);
  return limits;
}

inline config::v1::Quotas SmallQuotas() {
  config::v1::Quotas quotas;
  quotas.set_burst(absl::ToInt64Nanoseconds(absl::Seconds(1)));
  quotas.set_stream_pending_bytes(1 << 20);
  quotas.set_hello_timeout(absl::ToInt64Nanoseconds(absl::Minutes(1)));
  return quotas;
}

inline v1::ClientMessage HelloMessage(const std::string& agent_id = "agent-1",
                                      uint64_t generation = 7, uint64_t first_sequence = 1) {
  v1::ClientMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_agent_id(agent_id);
  hello->set_spool_generation(generation);
  hello->set_first_sequence(first_sequence);
  hello->set_version("1.2.3");
  hello->set_clock_unix_ns(kNowNs);
  return message;
}

// Layout 1 has steps and as many series as asked: "loss", then metric_1, ...
inline v1::ClientMessage LayoutMessage(int series = 2, uint32_t id = 1) {
  v1::ClientMessage message;
  v1::Layout* layout = message.mutable_layout();
  layout->set_id(id);
  layout->mutable_source()->set_job("vision");
  layout->mutable_source()->set_task(0);
  layout->mutable_source()->set_host("host-1");
  layout->set_has_steps(true);
  for (int i = 0; i < series; ++i) {
    v1::Layout::Series* column = layout->add_series();
    column->mutable_metric()->set_name(i == 0 ? "loss" : "metric_" + std::to_string(i));
    v1::Label* label = column->add_labels();
    label->set_name("chip");
    label->set_value(std::to_string(i));
  }
  return message;
}

// One row a second from kNowNs on; values has rows × series entries.
inline v1::ClientMessage BatchMessage(uint64_t sequence, const std::vector<double>& values = {1, 2},
                                      int rows = 1, uint32_t layout = 1) {
  v1::ClientMessage message;
  v1::Batch* batch = message.mutable_batch();
  batch->set_sequence(sequence);
  batch->set_layout(layout);
  for (int row = 0; row < rows; ++row) {
    batch->add_times_unix_ns(kNowNs + row * int64_t{1'000'000'000});
    batch->add_steps(row);
  }
  batch->mutable_values()->Add(values.begin(), values.end());
  return message;
}

inline v1::ClientMessage EventMessage(uint64_t sequence) {
  v1::ClientMessage message;
  v1::Event* event = message.mutable_event();
  event->set_sequence(sequence);
  event->mutable_source()->set_job("vision");
  event->mutable_source()->set_host("host-1");
  event->set_time_unix_ns(kNowNs);
  event->set_step(12);
  event->set_kind("checkpoint_saved");
  (*event->mutable_fields())["path"] = "/ckpt/12";
  return message;
}

inline v1::ClientMessage AttributesMessage(uint64_t sequence) {
  v1::ClientMessage message;
  v1::Attributes* attributes = message.mutable_attributes();
  attributes->set_sequence(sequence);
  attributes->set_job("vision");
  (*attributes->mutable_values())["model"] = "resnet";
  return message;
}

inline v1::ClientMessage GapMessage(uint64_t sequence, uint64_t first, uint64_t last) {
  v1::ClientMessage message;
  v1::Gap* gap = message.mutable_gap();
  gap->set_sequence(sequence);
  gap->mutable_lost()->set_first(first);
  gap->mutable_lost()->set_last(last);
  gap->set_reason("spool full");
  return message;
}

}  // namespace tacho::server::ingest
