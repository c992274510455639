#include "tests/bench/fleet_messages.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/support/slice.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::bench {
namespace {

grpc::ByteBuffer ToBytes(const v1::ClientMessage& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer MakeHello(const std::string& agent_id, uint64_t generation) {
  v1::ClientMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_agent_id(agent_id);
  hello->set_spool_generation(generation);
  hello->set_first_sequence(1);
  hello->set_version("bench");
  hello->set_clock_unix_ns(absl::ToUnixNanos(absl::Now()));
  return ToBytes(message);
}

grpc::ByteBuffer MakeLayout(const FleetHost& host, uint32_t id) {
  v1::ClientMessage message;
  v1::Layout* layout = message.mutable_layout();
  layout->set_id(id);
  layout->set_has_steps(true);
  layout->mutable_source()->set_job(host.job());
  layout->mutable_source()->set_task(host.task());
  layout->mutable_source()->set_host(host.host());
  for (const FleetSeries& column : FleetColumns()) {
    v1::Layout::Series* series = layout->add_series();
    series->mutable_metric()->set_name(column.metric->name);
    series->mutable_metric()->set_type(column.metric->type);
    series->mutable_metric()->set_unit(column.metric->unit);
    series->mutable_metric()->set_help(column.metric->help);
    if (column.chip < 0) continue;
    v1::Label* label = series->add_labels();
    label->set_name("chip");
    label->set_value(absl::StrCat(column.chip));
  }
  return ToBytes(message);
}

grpc::ByteBuffer MakeBatch(FleetHost* host, uint32_t layout, uint32_t rows, uint64_t sequence) {
  v1::ClientMessage message;
  v1::Batch* batch = message.mutable_batch();
  batch->set_sequence(sequence);
  batch->set_layout(layout);
  for (uint32_t i = 0; i < rows; ++i) {
    const FleetRow row = host->NextRow();
    batch->add_times_unix_ns(row.time_unix_ns);
    batch->add_steps(row.step);
    batch->mutable_values()->Add(row.values.begin(), row.values.end());
  }
  return ToBytes(message);
}

grpc::ByteBuffer MakeTableLayout(const std::string& job, uint32_t id, size_t first_column,
                                 size_t columns) {
  v1::ClientMessage message;
  v1::Layout* layout = message.mutable_layout();
  layout->set_id(id);
  layout->mutable_source()->set_job(job);
  layout->mutable_source()->set_task(id);
  layout->mutable_source()->set_host("replay");
  for (size_t i = 0; i < columns; ++i) {
    v1::Metric* metric = layout->add_series()->mutable_metric();
    metric->set_name(absl::StrCat("column_", first_column + i));
    metric->set_type(v1::METRIC_TYPE_GAUGE);
  }
  return ToBytes(message);
}

grpc::ByteBuffer MakeTableBatch(const ReplayOptions& options, const ColumnTable& table,
                                uint32_t layout, size_t first_row, uint64_t sequence) {
  v1::ClientMessage message;
  v1::Batch* batch = message.mutable_batch();
  batch->set_sequence(sequence);
  batch->set_layout(layout);
  const size_t end = std::min(first_row + options.rows, table.front().size());
  for (size_t row = first_row; row < end; ++row) {
    batch->add_times_unix_ns(options.start_unix_ns +
                             static_cast<int64_t>(row) * options.interval_ns);
    for (const auto& column : table) batch->add_values(column[row]);
  }
  return ToBytes(message);
}

}  // namespace

AgentMessages MakeAgentMessages(const FleetOptions& options, uint32_t first_host, uint32_t hosts,
                                uint32_t rows, uint32_t batches) {
  AgentMessages messages;
  std::vector<FleetHost> fleet;
  for (uint32_t i = 0; i < hosts; ++i) fleet.emplace_back(options, first_host + i);
  // Sequences start anew with every load: so must the generation.
  messages.hello = MakeHello(absl::StrCat("agent-of-", options.job_prefix, fleet.front().host()),
                             1 + options.seed + options.skip_rows);
  for (uint32_t i = 0; i < hosts; ++i) messages.layouts.push_back(MakeLayout(fleet[i], i));
  uint64_t sequence = 0;
  for (uint32_t b = 0; b < batches; ++b) {
    for (uint32_t i = 0; i < hosts; ++i) {
      messages.batches.push_back(MakeBatch(&fleet[i], i, rows, ++sequence));
    }
  }
  return messages;
}

AgentMessages MakeReplayMessages(const ReplayOptions& options,
                                 const std::vector<ColumnTable>& tables) {
  AgentMessages messages;
  messages.hello = MakeHello(absl::StrCat("replay-of-", options.job), 1);
  size_t columns = 0;
  size_t rows = 0;
  for (const ColumnTable& table : tables) {
    const auto id = static_cast<uint32_t>(messages.layouts.size());
    messages.layouts.push_back(MakeTableLayout(options.job, id, columns, table.size()));
    columns += table.size();
    rows = std::max(rows, table.front().size());
  }
  for (size_t row = 0; row < rows; row += options.rows) {
    for (size_t i = 0; i < tables.size(); ++i) {
      if (row >= tables[i].front().size()) continue;
      messages.batches.push_back(MakeTableBatch(options, tables[i], static_cast<uint32_t>(i), row,
                                                messages.batches.size() + 1));
    }
  }
  return messages;
}

}  // namespace tacho::bench
