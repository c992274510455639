#include "agent/sources/self/self_source.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/rows/agent_metrics.h"

namespace tacho::agent {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// The second word of /proc/self/statm counts pages.
double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void AddCost(Sample* sample) {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  sample->Add(own::kCpu, Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  sample->Add(own::kResident, ResidentBytes());
}

void AddDelivery(const DeliveryFigures& figures, Sample* sample) {
  sample->Add(own::kSpoolMessages, static_cast<double>(figures.waiting_messages));
  sample->Add(own::kSpoolBytes, static_cast<double>(figures.waiting_bytes));
  sample->Add(own::kRows, static_cast<double>(figures.rows));
  sample->Add(own::kLostRows, static_cast<double>(figures.lost_rows));
  sample->Add(own::kMissingMessages, "again", static_cast<double>(figures.missing_again));
  sample->Add(own::kMissingMessages, "gone", static_cast<double>(figures.missing_gone));
  if (figures.clock_ahead_seconds) sample->Add(own::kClockOffset, *figures.clock_ahead_seconds);
  if (figures.clock_uncertainty_seconds) {
    sample->Add(own::kClockUncertainty, *figures.clock_uncertainty_seconds);
  }
}

void AddLosses(const SpoolStats& stats, Sample* sample) {
  for (size_t i = 0; i < stats.lost.size(); ++i) {
    const SpoolStats::Lost& lost = stats.lost.at(i);
    sample->Add(own::kSpoolLostRows, kSpoolLossNames.at(i), static_cast<double>(lost.rows));
    sample->Add(own::kSpoolLostMessages, kSpoolLossNames.at(i), static_cast<double>(lost.messages));
  }
}

// Returns what is wrong with a source now. A poll that hangs counts as an error.
absl::Status StatusOf(const SourceHealth& health) {
  if (health.in_poll < SelfSource::kPollTakesTooLong) return health.status;
  return absl::DeadlineExceededError(
      absl::StrCat("its poll has not returned for ",
                   absl::FormatDuration(absl::Trunc(health.in_poll, absl::Minutes(1))),
                   "; what it asks (a driver, a mount, an endpoint) hangs"));
}

// For a source that fails.
absl::Duration FailingFor(const SourceHealth& health, absl::Time now) {
  return health.status.ok() ? health.in_poll : std::max(now - health.since, absl::ZeroDuration());
}

void AddSource(const SourceHealth& health, absl::Time now, Sample* sample) {
  const absl::Status status = StatusOf(health);
  const std::string& name = health.name;
  sample->Add(own::kSourceUp, name, status.ok() ? 1 : 0);
  if (!status.ok()) {
    sample->Add(own::kSourceFailing,
                {{"source", name}, {"reason", absl::StatusCodeToString(status.code())}}, 1);
    sample->Add(own::kSourceFailingSeconds, name, absl::ToDoubleSeconds(FailingFor(health, now)));
    sample->Add(own::kSourceRetrySeconds, name, absl::ToDoubleSeconds(health.next_poll_in));
  }
  sample->Add(own::kSourcePolls, name, static_cast<double>(health.polls));
  sample->Add(own::kSourceFailures, name, static_cast<double>(health.failures));
  sample->Add(own::kSourcePollSeconds, name, absl::ToDoubleSeconds(health.busy));
  sample->Add(own::kSourceInPollSeconds, name, absl::ToDoubleSeconds(health.in_poll));
  sample->Add(own::kSourceLostRows, name, static_cast<double>(health.lost_rows));
}

}  // namespace

SelfSource::SelfSource(SelfOptions options)
    : options_(std::move(options)),
      log_("agent", options_.log),
      cadence_(options_.interval),
      rows_(options_.job, options_.host, SeriesRows::Leaves::kAtOnce) {}

absl::Time SelfSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  std::vector<SourceHealth> sources = options_.ledger->Read(options_.monotonic());
  // This source leaves itself out: it is in a poll and works.
  std::erase_if(sources, [this](const SourceHealth& health) { return health.name == name(); });
  log_.WarnIfLost(rows_.Write(now, Take(now, sources), sink));
  TellChanges(now, sources, sink);
  return cadence_.due();
}

Sample SelfSource::Take(absl::Time now, const std::vector<SourceHealth>& sources) const {
  Sample sample;
  sample.Add(own::kInfo, {{"agent_id", options_.agent_id}, {"version", options_.version}}, 1);
  AddCost(&sample);
  AddDelivery(options_.delivery(), &sample);
  if (options_.spool) AddLosses(options_.spool(), &sample);
  if (options_.refused) {
    for (const auto& [reason, samples] : options_.refused()) {
      sample.Add(own::kRefusedSamples, reason, static_cast<double>(samples));
    }
  }
  for (const SourceHealth& health : sources) AddSource(health, now, &sample);
  return sample;
}

void SelfSource::TellChanges(absl::Time now, const std::vector<SourceHealth>& sources,
                             RowSink* sink) {
  for (const SourceHealth& health : sources) {
    const absl::Status status = StatusOf(health);
    absl::Status& told = told_[health.name];
    if (status == told) continue;
    v1::Event event;
    event.mutable_source()->set_job(options_.job);
    event.mutable_source()->set_host(options_.host);
    event.set_time_unix_ns(absl::ToUnixNanos(now));
    event.set_kind(status.ok() ? "source_recovered" : "source_failed");
    constexpr size_t kLongestMessage = 1000;  // An event's may have 1,024 bytes.
    const std::string message =
        status.ok() ? absl::StrCat(health.name, " works again") : std::string(status.message());
    event.set_message(message.substr(0, kLongestMessage));
    (*event.mutable_fields())["source"] = health.name;
    (*event.mutable_fields())["code"] = absl::StatusCodeToString(status.code());
    // If the spool refuses the event, the next poll tries again.
    if (!sink->AppendEvent(event, {}).ok()) continue;
    if (status.ok()) {
      options_.log.Info("a source works again", {{"source", health.name}});
    } else {
      options_.log.Warn("a source fails; the agent tries it again",
                        {{"source", health.name}, {"reason", status.ToString()}});
    }
    told = status;
  }
}

}  // namespace tacho::agent
