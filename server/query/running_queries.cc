#include "server/query/running_queries.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::query {

void RunningQueries::Entry::Begin(RunningQuery query, const QueryControl* control) {
  TACHO_CHECK(!listed_);
  absl::MutexLock lock(&all_->mutex_);
  row_ = all_->rows_.insert(all_->rows_.end(), {std::move(query), control});
  listed_ = true;
}

void RunningQueries::Entry::End() {
  if (!std::exchange(listed_, false)) return;
  absl::MutexLock lock(&all_->mutex_);
  all_->rows_.erase(row_);
}

std::vector<RunningQuery> RunningQueries::Oldest(size_t at_most) const {
  std::vector<RunningQuery> found;
  absl::MutexLock lock(&mutex_);
  for (const Row& row : rows_) {
    if (found.size() == at_most) break;
    found.push_back(row.query);
    found.back().samples_read = row.control->samples_read();
  }
  return found;
}

}  // namespace tacho::server::query
