// Records what this machine is, and asks the metadata server until it answers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/identity/host_facts.h"
#include "agent/sources/identity/metadata_server.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "proto/base/clock.h"

namespace tacho::agent {

struct IdentitySourceOptions {
  std::string job = {};   // Under which the row is filed: that of the host.
  std::string host = {};  // Label of every row.
  HostFacts local = {};   // Found without a network; it wins over the metadata server.
  std::optional<MetadataServer> metadata = std::nullopt;  // None: this machine has none.
  std::shared_ptr<KnownHost> known = nullptr;             // Gets all of it.
  log::Log log = {};
  std::function<absl::Time()> steady_now = MonotonicNow;
};

// The series host_info, 1, with a label for each of the most telling facts, each minute. Where
// nothing is known there is none. One thread, but for AskNow().
class IdentitySource : public Source {
 public:
  static constexpr absl::Duration kInterval = absl::Minutes(1);
  // Facts about a running machine change only when its metadata is edited.
  static constexpr absl::Duration kAskAgain = absl::Minutes(10);
  // For one round of requests; a metadata server answers each in milliseconds.
  static constexpr absl::Duration kBudget = absl::Milliseconds(1500);
  // A collector takes 16 labels a series beyond job, task and host.
  static constexpr size_t kMaxLabels = 15;

  explicit IdentitySource(IdentitySourceOptions options);

  // Asks the metadata server, if there is one: before the first poll, so that the first Hello
  // knows. Returns TPU_RUNTIME_METRICS_PORTS of its tpu-env.
  std::string AskNow();

  absl::string_view name() const override { return "identity"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  const IdentitySourceOptions options_;
  SourceLog log_;
  Cadence cadence_{kInterval};
  SeriesRows rows_;
  absl::Time asked_ = absl::InfinitePast();  // Steady clock.
  absl::Status status_;
};

}  // namespace tacho::agent
