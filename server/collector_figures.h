// The collector's own state, for operators and screens.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "server/http/readiness.h"
#include "server/ingest/ingest_service.h"
#include "storage/store.h"
#include "tacho/v1/admin.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server {

struct CollectorFigures {
  const storage::Store* store = nullptr;  // Not owned, as the two below.
  const ingest::IngestService* ingest = nullptr;
  const http::Readiness* readiness = nullptr;
  absl::Time started;
  bool draining = false;
  std::string directory;     // The store's.
  absl::Duration retention;  // Zero: for ever.

  // Fills in what these parts know. The rest is the caller's: version, clock, and what other parts
  // count.
  void Fill(v1::GetStatsResponse* stats) const;
  void Fill(v1::CollectorResponse* response) const;
};

}  // namespace tacho::server
