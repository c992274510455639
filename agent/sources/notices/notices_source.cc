// Asks the metadata server for notices and records each change once, as an event of the host and of
// each task that runs on it.
#include "agent/sources/notices/notices_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/sources/notices/maintenance.h"

namespace tacho::agent {

// A key of the server's whose value is one word.
struct NoticesSource::Notice {
  const char* path;
  const char* begins;  // The kind of event when something is announced.
  const char* says;    // Its message, before the word.
  const char* ends;    // The kind of the event when it ends; null: no event.
  const char* over;    // Its message.
};

namespace {

constexpr char kMaintenancePath[] = "instance/maintenance-event";
constexpr char kPreemptedPath[] = "instance/preempted";
constexpr char kPlannedPath[] = "instance/upcoming-maintenance?alt=json";
constexpr char kCheckpoint[] = "notices/told";

constexpr Metric kMaintenance = {"host_maintenance", v1::METRIC_TYPE_GAUGE, "1",
                                 "1 from a minute before the machine is migrated or stopped "
                                 "for maintenance until that is over."};
constexpr Metric kPreempted = {"host_preempted", v1::METRIC_TYPE_GAUGE, "1",
                               "1 from the moment that the machine is being taken away."};
constexpr Metric kPlanned = {"host_maintenance_planned", v1::METRIC_TYPE_GAUGE, "1",
                             "1 while maintenance of the machine is announced or goes on."};

constexpr struct {
  const char* path;
  const Metric* metric;
} kMetrics[] = {
    {kMaintenancePath, &kMaintenance}, {kPreemptedPath, &kPreempted}, {kPlannedPath, &kPlanned}};

std::string Message(const PlannedMaintenance& planned) {
  const auto of = [&](const char* member) {
    const auto found = planned.find(member);
    return found == planned.end() ? std::string("unknown") : found->second;
  };
  return absl::StrCat("maintenance of this machine is announced: ", of("type"), ", ",
                      of("maintenance_status"), ", from ", of("window_start_time"), " to ",
                      of("window_end_time"));
}

}  // namespace

NoticesSource::NoticesSource(MetadataServer server, NoticesOptions options)
    : server_(std::move(server)),
      options_(std::move(options)),
      log_("notices", options_.log),
      cadence_(options_.interval),
      events_(
          {.job = options_.job, .host = options_.host, .running_tasks = options_.running_tasks}),
      rows_(options_.job, options_.host, SeriesRows::Leaves::kLate) {}

absl::Time NoticesSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  if (!book_.has_value()) book_.emplace(kCheckpoint, *sink);
  status_ = absl::OkStatus();
  changed_ = false;
  LookAt(now, {kPreemptedPath, "preempted", "this machine is being taken away", nullptr, nullptr});
  LookAt(now, {kMaintenancePath, "maintenance_started",
               "this machine is about to be migrated or stopped for maintenance",
               "maintenance_ended", "the maintenance of this machine is over"});
  const bool slow = slow_.TakeDue(now);
  if (slow) LookAtPlans(now);
  events_.EndPoll();
  if (const absl::Status s = book_->Flush(sink); !s.ok()) {
    log_.Warn("events wait", {{"reason", s.ToString()}});
  }
  if (slow || changed_) WriteRow(now, sink);
  return cadence_.due();
}

std::optional<std::string> NoticesSource::Ask(const char* path) {
  if (!status_.ok()) return std::nullopt;  // Another timeout would be spent for nothing.
  absl::StatusOr<std::string> text = server_.Get(path);
  if (text.ok()) return *std::move(text);
  if (absl::IsNotFound(text.status())) {
    told_of_.erase(path);
  } else {
    told_of_.clear();
    status_ = text.status();
    log_.Warn("the metadata server fails", {{"reason", status_.message()}});
  }
  return std::nullopt;
}

void NoticesSource::LookAt(absl::Time now, const Notice& notice) {
  const std::optional<std::string> text = Ask(notice.path);
  if (!text.has_value()) return;
  const absl::StatusOr<std::string> word = ParseNotice(*text);
  if (!word.ok()) {
    log_.Warn("cannot understand a notice",
              {{"path", notice.path}, {"reason", word.status().message()}});
    told_of_.erase(notice.path);
    return;
  }
  told_of_[notice.path] = !word->empty();
  if (!book_->Update(notice.path, *word)) return;
  changed_ = true;
  if (!word->empty()) {
    Tell(now, notice.begins, absl::StrCat(notice.says, ": ", *word), {{"notice", *word}});
  } else if (notice.ends != nullptr) {
    Tell(now, notice.ends, notice.over, {});
  }
}

void NoticesSource::LookAtPlans(absl::Time now) {
  const std::optional<std::string> text = Ask(kPlannedPath);
  if (!text.has_value()) return;
  const auto planned = ParsePlannedMaintenance(*text);
  if (!planned.ok()) {
    log_.Warn("cannot understand a notice",
              {{"path", kPlannedPath}, {"reason", planned.status().message()}});
    told_of_.erase(kPlannedPath);
    return;
  }
  told_of_[kPlannedPath] = planned->has_value();
  const std::string says =
      planned->has_value() ? absl::StrJoin(**planned, ";", absl::PairFormatter("=")) : "";
  if (!book_->Update(kPlannedPath, says)) return;
  changed_ = true;
  if (planned->has_value()) {
    Tell(now, "maintenance_planned", Message(**planned), **planned);
  } else {
    Tell(now, "maintenance_cleared", "no maintenance of this machine is announced any more", {});
  }
}

void NoticesSource::Tell(absl::Time now, const std::string& kind, const std::string& message,
                         const std::map<std::string, std::string>& fields) {
  log_.Warn("the metadata server gives notice", {{"event", kind}, {"notice", message}});
  events_.Add(now, kind, message, fields, &*book_);
}

void NoticesSource::WriteRow(absl::Time now, RowSink* sink) {
  Sample sample;
  for (const auto& [path, metric] : kMetrics) {
    const auto told = told_of_.find(path);
    if (told != told_of_.end()) sample.Add(*metric, told->second ? 1 : 0);
  }
  log_.WarnIfLost(rows_.Write(now, sample, sink));
}

}  // namespace tacho::agent
