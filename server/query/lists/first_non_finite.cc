// Walks each series once in ascending time. Most columns are finite throughout and their headers
// say so, so that a healthy job costs a look at headers.
#include "server/query/lists/first_non_finite.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {
namespace {

// A series that turned.
struct Turned {
  storage::SeriesPtr series;
  Sample first;
  std::optional<Sample> last_finite;  // Before it.
  uint64_t non_finite = 0;
  uint64_t finite_after = 0;
};

// Series as they are found ascend by name, and equal ones stay in that order.
bool TurnedEarlier(const Turned& a, const Turned& b) {
  return std::tie(a.first.time_ns, a.first.step) < std::tie(b.first.time_ns, b.first.step);
}

// Takes the samples of one series in ascending time.
class Examination {
 public:
  void Add(const storage::Chunk& chunk) {
    if (chunk.is_summary()) {
      Add(chunk.summary());
    } else {
      Add(chunk.samples());
    }
  }

  uint64_t samples() const { return samples_; }
  // nullopt if all is finite.
  std::optional<Turned> Take(const storage::SeriesPtr& series) {
    if (!turned_) return std::nullopt;
    found_.series = series;
    return std::move(found_);
  }

 private:
  void Add(const storage::SampleSummary& summary) {
    samples_ += summary.count;
    if (turned_) {
      found_.finite_after += summary.count;
    } else {
      found_.last_finite =
          Sample{summary.last_time_ns, summary.last_step, summary.attempt, summary.last};
    }
  }
  void Add(const storage::SampleView& samples) {
    samples_ += samples.size();
    for (size_t i = 0; i < samples.size(); ++i) {
      const bool finite = std::isfinite(samples.columns.values[i]);
      if (turned_) {
        ++(finite ? found_.finite_after : found_.non_finite);
        continue;
      }
      const Sample sample = SampleOf(samples, i);
      if (finite) {
        found_.last_finite = sample;
      } else {
        turned_ = true;
        found_.first = sample;
        found_.non_finite = 1;
      }
    }
  }

  Turned found_;
  bool turned_ = false;
  uint64_t samples_ = 0;
};

// Keeps the earliest of those that are added, a bounded number.
class Spread {
 public:
  explicit Spread(size_t most) : most_(most) {}

  void Add(Turned turned) {
    earliest_.push_back(std::move(turned));
    // Seldom, so that each costs little.
    if (earliest_.size() >= 2 * most_) Cut();
  }
  std::vector<Turned> Take() {
    Cut();
    return std::move(earliest_);
  }

 private:
  void Cut() {
    std::stable_sort(earliest_.begin(), earliest_.end(), TurnedEarlier);
    if (earliest_.size() > most_) {
      earliest_.erase(earliest_.begin() + static_cast<ptrdiff_t>(most_), earliest_.end());
    }
  }

  const size_t most_;
  std::vector<Turned> earliest_;
};

void Fill(const Turned& turned, v1::NonFinite* proto) {
  ToProto(*turned.series, proto->mutable_series());
  proto->set_time_unix_ns(turned.first.time_ns);
  if (turned.first.step != storage::kNoStep) proto->set_step(turned.first.step);
  proto->set_attempt(turned.first.attempt);
  proto->set_value(turned.first.value);
  if (turned.last_finite.has_value()) {
    proto->set_last_finite(turned.last_finite->value);
    proto->set_last_finite_unix_ns(turned.last_finite->time_ns);
    if (turned.last_finite->step != storage::kNoStep) {
      proto->set_last_finite_step(turned.last_finite->step);
    }
  }
  proto->set_non_finite(turned.non_finite);
  proto->set_finite_after(turned.finite_after);
}

}  // namespace

absl::Status FirstNonFinite(const storage::Store& store, const v1::FirstNonFiniteRequest& request,
                            uint64_t max_series, const QueryControl& control,
                            v1::FirstNonFiniteResponse* response) {
  if (request.max_series() > kMaxSpreadSeries) {
    return errors::InvalidFieldError("max_series", absl::StrCat("is at most ", kMaxSpreadSeries));
  }
  TACHO_ASSIGN_OR_RETURN(auto selection, MakeSelection(request.selector()));
  TACHO_ASSIGN_OR_RETURN(auto read, ReadOptionsOf(request));
  TACHO_RETURN_IF_ERROR(ChooseAttempts(store, request.attempts(), &selection));
  read.attempt = selection.attempts.only();
  const auto view = store.OpenJobView(request.selector().job());
  TACHO_ASSIGN_OR_RETURN(const auto all, FindSelected(store, selection, max_series));

  Spread spread(request.max_series() == 0 ? kDefaultSpreadSeries : request.max_series());
  for (const storage::SeriesPtr& series : all) {
    Examination examination;
    TACHO_RETURN_IF_ERROR(SeriesScan(view->Read(series, read), selection.attempts, control)
                              .ForEach(storage::AnySummary(), [&](const storage::Chunk& chunk) {
                                examination.Add(chunk);
                              }));
    response->set_samples_examined(response->samples_examined() + examination.samples());
    auto turned = examination.Take(series);
    if (!turned.has_value()) continue;
    response->set_series_turned(response->series_turned() + 1);
    spread.Add(*std::move(turned));
  }
  response->set_series_examined(all.size());
  for (const Turned& turned : spread.Take()) Fill(turned, response->add_spread());
  return absl::OkStatus();
}

}  // namespace tacho::server::query
