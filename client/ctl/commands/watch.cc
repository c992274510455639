// 'watch': follows a job over lost connections. A call that breaks is made again from the newest
// sample, and the model drops what it repeats.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/call/watch_call.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/environment.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/format.h"
#include "client/ctl/views/job_status.h"
#include "client/ctl/views/watch_display.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/task_end.h"

namespace tacho::ctl {
namespace {

// How soon Ctrl-C is noticed.
constexpr absl::Duration kGlance = absl::Milliseconds(100);
// How often the collector is asked about tasks and attempts.
constexpr absl::Duration kRefresh = absl::Seconds(3);
// The collector says every fifteen seconds that it is there.
constexpr absl::Duration kSilence = absl::Seconds(45);
constexpr absl::Duration kLongestPause = absl::Seconds(5);
// Ctrl-C waits for a call, so none may take long.
constexpr absl::Duration kPatience = absl::Seconds(3);

struct WatchOptions {
  std::string job;
  std::vector<std::string> metrics;  // None: those that say most.
  std::vector<v1::Matcher> matchers;
  absl::Duration window = absl::Minutes(10);
  absl::Duration interval = absl::Seconds(1);
  absl::Duration length = absl::InfiniteDuration();
};

absl::StatusOr<WatchOptions> ParseOptions(const ParsedArgs& args) {
  WatchOptions options;
  options.job = args.positionals()[0];
  options.metrics.assign(args.positionals().begin() + 1, args.positionals().end());
  const auto matchers = ParseMatchers(args);
  if (!matchers.ok()) return matchers.status();
  options.matchers = *matchers;
  for (const auto& [flag, value] :
       {std::make_pair("since", &options.window), std::make_pair("interval", &options.interval),
        std::make_pair("for", &options.length)}) {
    const std::optional<std::string> text = args.Get(flag);
    if (!text) continue;
    const absl::StatusOr<absl::Duration> duration = ParseDuration(*text);
    if (!duration.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", duration.status().message()));
    }
    *value = *duration;
  }
  options.interval = std::max(options.interval, kGlance);
  return options;
}

// Whether trying again helps: the collector was ended, is starting, or found this client too slow,
// which is the meaning of RESOURCE_EXHAUSTED after `live`.
bool IsPassing(const absl::Status& status, bool was_live) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return was_live;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kOk:
      return true;
    default:
      return false;
  }
}

// The names that the collector suggests instead; "" if it suggests none.
std::string Nearest(const absl::Status& not_found) {
  const std::string text(not_found.message());
  const size_t at = text.find("did you mean");
  return at == std::string::npos ? "" : absl::StrCat("; ", text.substr(at));
}

class Watcher {
 public:
  Watcher(const Invocation& invocation, WatchOptions options, const Interrupts& interrupts)
      : invocation_(invocation),
        options_(std::move(options)),
        interrupts_(interrupts),
        client_({invocation.common.address, std::min(invocation.common.timeout, kPatience),
                 invocation.common.security}),
        end_(MonotonicNow() + options_.length),
        model_(options_.window, [this](const v1::SeriesInfo& series, const Point& point) {
          display_->Sample(series, point);
        }) {}

  int Run() {
    // An error from the beginning is printed at once, without a screen.
    absl::Status status = Refresh();
    if (!status.ok() && status.code() != absl::StatusCode::kNotFound) {
      return CallError(invocation_, client_, status);
    }
    display_ = MakeWatchDisplay(invocation_);
    if (!job_) {
      Note(absl::StrCat("no job '", options_.job, "' yet; waiting for it", Nearest(status)), false);
    }
    while (Continues()) {
      status = job_ ? ReadCall() : Refresh();
      if (!Continues()) break;
      if (!status.ok() && !IsPassing(status, live_) &&
          status.code() != absl::StatusCode::kNotFound) {
        display_.reset();
        return JobCallError(invocation_, client_, options_.job, status);
      }
      if (job_ && !status.ok()) Lost(status);
      Pause(job_ ? pause_ : absl::Seconds(1));
    }
    display_.reset();
    return kOk;
  }

 private:
  bool Continues() const {
    return !interrupts_.came() && MonotonicNow() < end_ && invocation_.env.out->good();
  }

  absl::Status Refresh() {
    auto answer = client_.GetJob(options_.job);
    refreshed_ = MonotonicNow();
    if (!answer.ok()) return answer.status();
    job_ = *std::move(answer);
    conditions_ = client_.ConditionsOf(options_.job);
    return absl::OkStatus();
  }

  std::vector<std::string> Wanted() const {
    return options_.metrics.empty() ? KeyMetrics(*job_) : options_.metrics;
  }

  // Until the call ends, or must begin anew because there are other metrics to watch. OK: stopped
  // here.
  absl::Status ReadCall() {
    const std::vector<std::string> metrics = Wanted();
    v1::WatchRequest request;
    request.mutable_selector()->set_job(options_.job);
    request.mutable_selector()->mutable_metrics()->Assign(metrics.begin(), metrics.end());
    request.mutable_selector()->mutable_matchers()->Assign(options_.matchers.begin(),
                                                           options_.matchers.end());
    request.set_begin_unix_ns(
        model_.ResumeFrom().value_or(absl::ToUnixNanos(absl::Now() - options_.window)));
    request.set_events(true);
    model_.BeginCall();
    live_ = false;
    const std::unique_ptr<WatchCall> call = client_.Watch(request);
    absl::Time heard = MonotonicNow();
    v1::WatchResponse message;
    absl::Status status;
    while (Continues()) {
      switch (call->Next(&message, std::min(kGlance, next_show_ - MonotonicNow()))) {
        case WatchCall::Result::kEnded:
          status = client_.EndOf(*call);
          return status.ok() ? absl::UnavailableError("it ended the call") : status;
        case WatchCall::Result::kTimeout:
          if (MonotonicNow() - heard > kSilence) {
            return absl::UnavailableError("no sign of life from it");
          }
          break;
        case WatchCall::Result::kMessage:
          heard = MonotonicNow();
          TACHO_RETURN_IF_ERROR(Take(message));
          break;
      }
      Tick();
      if (options_.metrics.empty() && Wanted() != metrics) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status Take(const v1::WatchResponse& message) {
    const size_t before = model_.told_events();
    TACHO_RETURN_IF_ERROR(model_.Add(message));
    if (model_.told_events() > before) {
      display_->Event(message.event());
      refreshed_ = absl::InfinitePast();
      if (IsEndKind(message.event().kind())) ended_.push_back(message.event());
    }
    if (message.has_live()) Found();
    return absl::OkStatus();
  }

  void Tick() {
    const absl::Time now = MonotonicNow();
    if (now - refreshed_ >= kRefresh) {
      // If this fails, the tasks on the screen get old; the watch call reports the cause.
      const absl::Status refreshed = Refresh();
      if (!refreshed.ok()) refreshed_ = now;
    }
    if (now >= next_show_) Show();
  }

  void Show() {
    const absl::Time now = absl::Now();
    next_show_ = MonotonicNow() + options_.interval;
    std::optional<JobStatus> status;
    if (job_) {
      status = AssessJob(*job_, Wanted(), model_.Latest(), Ended(), now, absl::ZeroDuration());
      status->conditions = conditions_;
    }
    WatchView view;
    view.job = options_.job;
    view.status = status ? &*status : nullptr;
    view.model = &model_;
    view.now = now;
    view.zone = invocation_.env.zone;
    view.note = note_;
    view.alarm = alarm_;
    display_->Show(view);
  }

  // Those that came while watching, and what the collector says of the attempts.
  std::vector<v1::RecordedEvent> Ended() const {
    std::vector<v1::RecordedEvent> ended;
    for (const v1::Attempt& attempt : job_->attempts()) {
      if (!attempt.has_ended_unix_ns() || attempt.state() != v1::JOB_STATE_ENDED) continue;
      v1::RecordedEvent& event = ended.emplace_back();
      event.mutable_source()->set_attempt(attempt.attempt());
      event.set_time_unix_ns(attempt.ended_unix_ns());
      event.set_message(attempt.end_message());
    }
    ended.insert(ended.end(), ended_.begin(), ended_.end());
    return ended;
  }

  void Note(std::string text, bool alarm) {
    note_ = std::move(text);
    alarm_ = alarm;
    display_->Note(note_);
  }

  void Lost(const absl::Status& status) {
    pause_ = std::min(2 * pause_, kLongestPause);
    if (lost_) return;
    lost_ = MonotonicNow();
    Note(absl::StrCat("lost the collector at ", client_.address(), ": ",
                      std::string(status.message()), "; trying again"),
         true);
  }

  void Found() {
    live_ = true;
    pause_ = kFirstPause;
    if (!lost_) return;
    Note(absl::StrCat("connected again at ",
                      absl::FormatTime("%H:%M:%S", absl::Now(), invocation_.env.zone), ", after ",
                      ReadableDuration(MonotonicNow() - *lost_)),
         false);
    lost_.reset();
  }

  void Pause(absl::Duration length) {
    const absl::Time until = MonotonicNow() + length;
    while (Continues() && MonotonicNow() < until) {
      if (MonotonicNow() >= next_show_) Show();
      absl::SleepFor(std::min(kGlance, until - MonotonicNow()));
    }
  }

  static constexpr absl::Duration kFirstPause = absl::Milliseconds(500);

  const Invocation& invocation_;
  const WatchOptions options_;
  const Interrupts& interrupts_;
  QueryClient client_;
  const absl::Time end_;
  std::unique_ptr<WatchDisplay> display_;
  WatchModel model_;
  std::optional<v1::GetJobResponse> job_;
  std::optional<std::vector<v1::Condition>> conditions_;
  std::vector<v1::RecordedEvent> ended_;
  absl::Time refreshed_ = absl::InfinitePast();
  absl::Time next_show_ = absl::InfinitePast();
  absl::Duration pause_ = kFirstPause;
  std::optional<absl::Time> lost_;
  std::string note_;
  bool alarm_ = false;
  bool live_ = false;  // The current call has sent its history.
};

int RunWatch(const Invocation& invocation) {
  const absl::StatusOr<WatchOptions> options = ParseOptions(invocation.args);
  if (!options.ok()) {
    return UsageError(invocation.env, "watch", std::string(options.status().message()));
  }
  const Interrupts interrupts;
  return Watcher(invocation, *options, interrupts).Run();
}

}  // namespace

Command WatchCommand() {
  return {
      .name = "watch",
      .group = CommandGroup::kNow,
      .operands = "JOB [METRIC...]",
      .summary = "Watch a job live: progress, rate, newest values, the worst tasks",
      .details =
          R"(On a terminal, watch repaints the screen at each interval until Ctrl-C. Tasks whose values are NaN
or infinite come first, then silent tasks, then tasks that are behind; conditions that hold are listed
above them. Elsewhere, watch prints a line for each interval in which something came. If the
connection to the collector is lost, watch says so, waits and continues where it was. It also waits
for a job that does not exist yet. Exit code 0 when you end it.

Examples:
  tachoctl watch bert-base
  tachoctl watch bert-base loss grad_norm -m task=0 --interval 5s
  tachoctl watch bert-base --for 10m >> log.txt
  tachoctl watch bert-base loss -o json | jq -c 'select(.value == "NaN")'

JSON: a document a line, for each sample {"metric", "task" or null, "host", "labels": {}, "time",
  "time_unix_ns", "step" or null, "attempt", "value"}, for each event {"event", ..., "message",
  "fields": {}}, {"note"} when the collector was lost or found. CSV: samples, as for 'query'.)",
      .flags = {MatchFlag(),
                {.name = "since",
                 .placeholder = "AGE",
                 .help = "Begin this long ago, and draw a window of this length. Default: 10m."},
                {.name = "interval",
                 .placeholder = "AGE",
                 .help = "How often to refresh. Default: 1s."},
                {.name = "for", .placeholder = "AGE", .help = "End after this time."}},
      .min_operands = 1,
      .max_operands = kAnyNumber,
      .run = RunWatch};
}

}  // namespace tacho::ctl
