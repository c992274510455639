#include "server/goodput/goodput_board.h"

#include <algorithm>
#include <utility>

#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/query/read/query_control.h"

namespace tacho::server::goodput {
namespace {

// `before` may be null.
std::shared_ptr<const BoardGoodput> WithMost(JobGoodput goodput, const BoardGoodput* before) {
  auto made = std::make_shared<BoardGoodput>();
  static_cast<JobGoodput&>(*made) = std::move(goodput);
  made->most_ns = AmountsAsTheyCame(made->total);
  made->most_wall_ns = made->total.wall_ns();
  if (before == nullptr) return made;
  for (size_t i = 0; i < kGoodputBuckets; ++i) {
    made->most_ns[i] = std::max(made->most_ns[i], before->most_ns[i]);
  }
  made->most_wall_ns = std::max(made->most_wall_ns, before->most_wall_ns);
  return made;
}

}  // namespace

GoodputBoard::GoodputBoard(GoodputBoardOptions options)
    : options_(std::move(options)),
      signals_(options_.signals != nullptr ? options_.signals
                                           : std::make_shared<const conditions::SignalNames>()),
      rounds_(options_,
              [this](const std::string& job, const JobRounds::Figures& before,
                     const std::atomic<bool>& stopping) { return Make(job, before, stopping); }) {
  rounds_.Start("goodput");
}

absl::StatusOr<std::function<void()>> GoodputBoard::Prepare(const config::v1::Collector& config) {
  auto signals = std::make_shared<const conditions::SignalNames>(
      conditions::ConfiguredNames(config.conditions().signals()));
  return [this, signals = std::move(signals)] {
    {
      absl::MutexLock lock(&mutex_);
      signals_ = signals;
    }
    rounds_.MakeAllAgain();
  };
}

absl::StatusOr<JobRounds::Figures> GoodputBoard::Make(const std::string& job,
                                                      const JobRounds::Figures& before,
                                                      const std::atomic<bool>& stopping) {
  std::shared_ptr<const conditions::SignalNames> signals;
  {
    absl::MutexLock lock(&mutex_);
    signals = signals_;
  }
  const query::QueryControl control(absl::InfiniteDuration(), MonotonicNow, &stopping);
  TACHO_ASSIGN_OR_RETURN(JobGoodput goodput,
                         GoodputOf(*options_.store, job, *signals, options_.now(), control,
                                   /*max_spans=*/0, options_.reports));
  if (!goodput.has_steps && !goodput.has_phases) return JobRounds::Figures();
  return WithMost(std::move(goodput), static_cast<const BoardGoodput*>(before.get()));
}

}  // namespace tacho::server::goodput
