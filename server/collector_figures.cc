#include "server/collector_figures.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "server/edge/memory_budget.h"

namespace tacho::server {
namespace {

// Works for any message with these fields.
template <typename Proto>
void FillStoreStats(const storage::StoreStats& from, Proto* to) {
  to->set_jobs(from.jobs);
  to->set_series(from.series);
  to->set_samples_appended(from.samples_appended);
  to->set_open_rows(from.open_rows);
  to->set_open_bytes(from.open_bytes);
  to->set_journal_entries(from.journal_entries);
  to->set_journal_bytes(from.journal_bytes);
  to->set_queued_bytes(from.queued_bytes);
  to->set_partitions(from.partitions);
  to->set_disk_bytes(from.disk_bytes);
}

// The same.
template <typename Proto>
void FillState(const CollectorFigures& from, Proto* to) {
  to->set_started_unix_ns(absl::ToUnixNanos(from.started));
  to->set_not_ready(from.readiness->WhyNotReady());
  to->set_draining(from.draining);
  to->set_streams(from.ingest->open_streams());
}

}  // namespace

void CollectorFigures::Fill(v1::GetStatsResponse* stats) const {
  FillState(*this, stats);
  stats->set_pid(static_cast<uint32_t>(::getpid()));
  const storage::StoreStats figures = store->Stats();
  FillStoreStats(figures, stats->mutable_store());
  stats->mutable_store()->set_rows_appended(figures.rows_appended);
}

void CollectorFigures::Fill(v1::CollectorResponse* response) const {
  FillState(*this, response);
  FillStoreStats(store->Stats(), response);
  response->set_series_limit(store->limits()->totals().series);
  response->set_samples_refused(ingest->samples_rejected());
  response->set_memory_bytes(edge::ResidentBytes());
  response->set_retention_ns(absl::ToInt64Nanoseconds(retention));
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error) return;
  response->set_disk_free_bytes(space.available);
  response->set_disk_total_bytes(space.capacity);
}

}  // namespace tacho::server
