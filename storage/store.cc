#include "storage/store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/status_macros.h"
#include "storage/durable_store.h"

namespace tacho::storage {

absl::StatusOr<std::optional<LatestSample>> Store::Latest(const SeriesPtr& series) const {
  auto latest = LatestOf({series});
  if (!latest.ok()) return latest.status();
  return std::move(latest->front());
}

std::unique_ptr<SeriesReader> Store::Read(const SeriesPtr& series,
                                          const ReadOptions& options) const {
  std::unique_ptr<ReadView> view = OpenView({series});
  std::unique_ptr<SeriesReader> reader = view->Read(series, options);
  reader->Own(std::move(view));
  return reader;
}

absl::StatusOr<std::vector<Event>> Store::Events(absl::string_view job, int64_t begin_ns,
                                                 int64_t end_ns) const {
  std::vector<Event> events;
  absl::Status status =
      VisitEvents(job, begin_ns, end_ns, EventOrder::kOldestFirst, [&](Event event) {
        events.push_back(std::move(event));
        return true;
      });
  if (!status.ok()) return status;
  return events;
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  const absl::Time begun = absl::Now();
  auto database = Database::Open({.path = options.path,
                                  .block_cache_bytes = options.block_cache_bytes,
                                  .env = options.env,
                                  .at_point = options.at_point});
  if (!database.ok()) return database.status();
  if (options.log != nullptr) {
    options.log(absl::StrCat(
        "the database is open, its log read, in ",
        absl::FormatDuration(absl::Trunc(absl::Now() - begun, absl::Milliseconds(1)))));
  }
  auto store = std::make_unique<DurableStore>(std::move(options), *std::move(database));
  TACHO_RETURN_IF_ERROR(store->Recover());
  return store;
}

}  // namespace tacho::storage
