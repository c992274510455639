#include <utility>

#include "rocksdb/db.h"
#include "storage/columns/stored_view.h"
#include "storage/durable_store.h"

namespace tacho::storage {

class DurableStore::StoredJobView final : public JobView {
 public:
  // `id` is nullopt if there was no such job.
  StoredJobView(const DurableStore* store, std::string job, std::optional<JobId> id,
                CapturedRows open_rows)
      : store_(store),
        job_(std::move(job)),
        id_(id),
        view_(*store->database_, &store->columns_, std::move(open_rows)) {}

  std::unique_ptr<SeriesReader> Read(const SeriesPtr& series, const ReadOptions& options) override {
    return view_.Read(series, options);
  }

  absl::StatusOr<std::vector<Event>> Events(int64_t begin_ns, int64_t end_ns) const override {
    std::vector<Event> events;
    if (!id_) return events;
    rocksdb::ReadOptions read;
    read.snapshot = view_.snapshot();
    absl::Status status = store_->VisitEventsOf(read, *id_, job_, begin_ns, end_ns,
                                                EventOrder::kOldestFirst, [&](Event event) {
                                                  events.push_back(std::move(event));
                                                  return true;
                                                });
    if (!status.ok()) return status;
    return events;
  }

 private:
  const DurableStore* const store_;
  const std::string job_;
  const std::optional<JobId> id_;
  StoredView view_;
};

std::unique_ptr<JobView> DurableStore::CaptureJob(absl::string_view job) const {
  const auto id = index_.FindJob(job);
  CapturedRows open_rows;
  if (id) open_rows.Add(head_.CaptureJob(*id));
  return std::make_unique<StoredJobView>(this, std::string(job), id, std::move(open_rows));
}

std::unique_ptr<JobView> DurableStore::OpenJobView(absl::string_view job) const {
  std::unique_ptr<JobView> view;
  committer_.BetweenCommits([&] { view = CaptureJob(job); });
  return view;
}

std::unique_ptr<Subscription> DurableStore::Subscribe(SubscribeOptions options,
                                                      std::unique_ptr<JobView>* view) const {
  std::unique_ptr<Subscription> subscription;
  committer_.BetweenCommits([&] {
    if (view != nullptr) *view = CaptureJob(options.job);
    subscription = feed_.Subscribe(std::move(options));
  });
  return subscription;
}

}  // namespace tacho::storage
