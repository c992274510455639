#include "tests/support/fleet/chip_feed.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/import/upload.h"

namespace tacho::fleet {

ChipFeed::ChipFeed(std::string collector, uint64_t generation)
    : collector_(std::move(collector)), generation_(generation), sender_([this] { Run(); }) {}

ChipFeed::~ChipFeed() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  sender_.join();
}

void ChipFeed::Add(const std::string& host, int64_t time_ns,
                   std::vector<std::array<double, kChipMetrics>> chips) {
  const absl::MutexLock lock(&mutex_);
  waiting_.push_back({host, time_ns, std::move(chips)});
  if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
}

const v1::Layout* ChipFeed::LayoutOf(const Row& row) {
  v1::Layout& layout = layouts_[row.host];
  if (layout.series_size() > 0) return &layout;
  layout.mutable_source()->set_job("hosts");
  layout.mutable_source()->set_host(row.host);
  for (size_t chip = 0; chip < row.chips.size(); ++chip) {
    for (const ChipMetric& metric : kChipMetricList) {
      v1::Layout::Series* const series = layout.add_series();
      series->mutable_metric()->set_name(metric.name);
      series->mutable_metric()->set_type(metric.type);
      series->mutable_metric()->set_unit(metric.unit);
      series->mutable_metric()->set_help(metric.help);
      v1::Label* const label = series->add_labels();
      label->set_name("chip");
      label->set_value(absl::StrCat(chip));
    }
  }
  return &layout;
}

void ChipFeed::Run() {
  importer::Upload upload({.address = collector_,
                           .security = {},
                           .security_names = {},
                           .agent_id = "simulated-chips",
                           .generation = generation_,
                           .version = "simulation",
                           .say = nullptr});
  absl::Status status = upload.Connect();
  uint64_t sequence = 0;
  while (status.ok()) {
    Row row;
    {
      const absl::MutexLock lock(&mutex_);
      const auto something = [this] {
        mutex_.AssertHeld();
        return stopping_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&something));
      if (stopping_) return;
      row = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const v1::Layout* const layout = LayoutOf(row);
    v1::ClientMessage message;
    v1::Batch& batch = *message.mutable_batch();
    batch.set_sequence(++sequence);
    batch.add_times_unix_ns(row.time_ns);
    for (const auto& chip : row.chips) {
      for (const double value : chip) batch.add_values(value);
    }
    status = upload.Send(sequence, layout, std::move(message));
  }
  std::fprintf(stderr, "tacho-fleet-sim: no more chips: %s\n", status.ToString().c_str());
}

}  // namespace tacho::fleet
