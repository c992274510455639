// A request with events is worked through in passes: every event is mapped, admitted and checked
// for rights; then times and room for jobs; only then are events handed to the store, so that a
// request that is refused as a whole leaves no event behind.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/intake.h"
#include "server/interop/settling.h"

namespace tacho::server::interop {
namespace {

// An event makes its job, so that a request may make as many as it names.
constexpr size_t kMaxJobsOfRequest = 1000;
// How many stored events of one job and nanosecond are compared with new ones. Honest clocks tick
// between events.
constexpr size_t kMaxAtOneTime = 10'000;

// As agents are charged for their events.
uint64_t ChargeOf(const v1::Event& event) { return 1 + event.ByteSizeLong() / sizeof(double); }

}  // namespace

class Intake::EventsRequest {
 public:
  EventsRequest(Intake* intake, const ForeignEvents& write, const security::RightsPtr& rights)
      : intake_(*intake), options_(intake->options_), write_(write), rights_(*rights) {}

  // Everything that can refuse the request as a whole.
  absl::Status Prepare(const std::string& sender) {
    bucket_ = options_.quotas->BucketOfAgent(sender);
    TACHO_RETURN_IF_ERROR(intake_.CheckRates(bucket_.get(), nullptr));
    const auto mapping = intake_.mapping();
    for (const ForeignEvent& event : write_.events) TACHO_RETURN_IF_ERROR(Admit(*mapping, event));
    if (elsewhere_ > 0) {
      options_.metrics->Misdirected(elsewhere_);
      if (events_.empty() && outcome_.refused == elsewhere_) {
        return errors::ErrorOf(errors::Failure::kMisdirected, outcome_.refusal);
      }
    }
    if (jobs_.size() > kMaxJobsOfRequest) {
      return errors::ErrorOf(errors::Failure::kTooLarge,
                             absl::StrCat("the request has events of more than ", kMaxJobsOfRequest,
                                          " jobs: send fewer jobs a request"));
    }
    for (const std::string& job : jobs_) {
      TACHO_RETURN_IF_ERROR(options_.admission->CheckRights(rights_.CheckJob(job, "job")));
      TACHO_RETURN_IF_ERROR(
          intake_.CheckRates(bucket_.get(), options_.quotas->BucketOfJob(job).get()));
    }
    const ingest::TimeWindow window = options_.admission->Window();
    const auto outside = [&](const Admitted& one) {
      return one.event.time_ns < window.oldest_ns || one.event.time_ns > window.newest_ns;
    };
    if (std::any_of(events_.begin(), events_.end(), outside)) {
      TACHO_RETURN_IF_ERROR(intake_.CheckClock());
    }
    std::erase_if(events_, [&](const Admitted& one) {
      if (outside(one)) return RefuseTime(one.event, one.event.time_ns > window.newest_ns);
      return !options_.store->HasRoomForJob(one.event.source.job) && RefuseJob(one.event);
    });
    return absl::OkStatus();
  }

  // Hands the events to the store.
  void Send(Done done);

 private:
  struct Admitted {
    storage::Event event;
    uint64_t charge = 0;
  };
  // By identity: events of one job and time that this request brings to the store.
  using First = absl::flat_hash_map<std::string, const Admitted*>;

  absl::Status Admit(const LabelMapping& mapping, const ForeignEvent& foreign);
  // Whether another collector of the cluster keeps its job.
  absl::Status CheckKeeps(const absl::StatusOr<storage::Event>& admitted) const {
    const cluster::Membership* const membership = options_.admission->membership();
    if (membership == nullptr || !admitted.ok()) return absl::OkStatus();
    return membership->CheckKeeps(admitted->source.job);
  }
  // Each returns whether the event is refused.
  bool RefuseTime(const storage::Event& event, bool future);
  bool RefuseJob(const storage::Event& event);
  void Refused(absl::string_view why);
  void Append(const First& first);

  Intake& intake_;
  const IntakeOptions& options_;
  const ForeignEvents& write_;
  const security::Rights& rights_;
  std::shared_ptr<edge::TokenBucket> bucket_;
  std::vector<Admitted> events_;
  std::set<std::string> jobs_;
  uint64_t elsewhere_ = 0;  // Events of jobs that other collectors keep.
  WriteOutcome outcome_;
};

absl::Status Intake::EventsRequest::Admit(const LabelMapping& mapping,
                                          const ForeignEvent& foreign) {
  storage::Labels labels = write_.sources[foreign.source];
  labels.emplace_back(std::string(kNameLabel), foreign.name);
  const auto mapped = mapping.Map(std::move(labels));
  absl::Status problem = mapped.status();
  if (mapped.ok()) {
    if (mapped->dropped) return absl::OkStatus();
    v1::Event event = foreign.event;
    event.set_sequence(1);  // Agents count theirs; nobody reads this one.
    event.mutable_source()->set_job(mapped->source.job);
    event.mutable_source()->set_host(mapped->source.host);
    event.mutable_source()->set_attempt(mapped->source.attempt);
    if (mapped->source.task.has_value()) event.mutable_source()->set_task(*mapped->source.task);
    auto admitted = options_.admission->AdmitEvent(event);
    if (const absl::Status keeps = CheckKeeps(admitted); !keeps.ok()) {
      ++elsewhere_;
      Refused(keeps.message());
      return absl::OkStatus();
    }
    if (admitted.ok()) {
      jobs_.insert(admitted->source.job);
      events_.push_back({*std::move(admitted), ChargeOf(event)});
      return absl::OkStatus();
    }
    problem = admitted.status();
  }
  const absl::string_view why = problem.message();
  absl::MutexLock lock(&intake_.report_mutex_);
  intake_.report_.Refused("", v1::Reject::REASON_LABEL_INVALID, 1, foreign.event.kind(),
                          [why] { return std::string(why); });
  Refused(absl::StrCat("an event ", foreign.event.kind(), " breaks a rule: ", why));
  return absl::OkStatus();
}

bool Intake::EventsRequest::RefuseTime(const storage::Event& event, bool future) {
  absl::MutexLock lock(&intake_.report_mutex_);
  intake_.report_.EventRefused(event, future);
  Refused(absl::StrCat("an event ", event.kind, " is too ", future ? "new: " : "old: ",
                       future ? intake_.report_.FutureDetail() : intake_.report_.TooOldDetail()));
  return true;
}

bool Intake::EventsRequest::RefuseJob(const storage::Event& event) {
  absl::MutexLock lock(&intake_.report_mutex_);
  const auto action = intake_.report_.JobWithoutRoom(event.source.job);
  if (action == storage::LimitAction::kObserve) return false;
  Refused(absl::StrCat("there is no room for the job ", event.source.job,
                       ": the collector knows as many jobs as limits.jobs allows"));
  return true;
}

void Intake::EventsRequest::Refused(absl::string_view why) {
  if (outcome_.refused++ == 0) outcome_.refusal = std::string(why);
}

void Intake::EventsRequest::Send(Done done) {
  outcome_.stored = events_.size();
  const auto settling =
      std::make_shared<Settling>(std::move(outcome_), events_.size() + 1, std::move(done));
  const auto moment = [](const Admitted& one) {
    return std::tie(one.event.source.job, one.event.time_ns);
  };
  std::stable_sort(events_.begin(), events_.end(),
                   [&](const Admitted& a, const Admitted& b) { return moment(a) < moment(b); });
  for (size_t i = 0; i < events_.size();) {
    First first;
    const auto begin = moment(events_[i]);
    for (; i < events_.size() && moment(events_[i]) == begin; ++i) {
      std::string identity = EventsInFlight::IdentityOf(events_[i].event);
      const bool is_first = intake_.in_flight_.Begin(
          identity, [settling](const absl::Status& status) { settling->Settle(status); });
      if (is_first) first.emplace(std::move(identity), &events_[i]);
    }
    if (!first.empty()) Append(first);
  }
  settling->Settle(absl::OkStatus());
}

void Intake::EventsRequest::Append(const First& first) {
  const storage::Event& any = first.begin()->second->event;
  std::set<std::string> stored;
  size_t seen = 0;
  absl::Status status = options_.store->VisitEvents(
      any.source.job, any.time_ns, any.time_ns + 1, storage::Store::EventOrder::kOldestFirst,
      [&](const storage::Event& event) {
        std::string identity = EventsInFlight::IdentityOf(event);
        if (first.contains(identity)) stored.insert(std::move(identity));
        return ++seen < kMaxAtOneTime;
      });
  if (status.ok() && seen == kMaxAtOneTime && stored.size() < first.size()) {
    status = errors::ErrorOf(errors::Failure::kMalformed,
                             absl::StrCat("the job ", any.source.job, " has ", seen,
                                          " events of one nanosecond: give events their times"));
  }
  for (const auto& [identity, one] : first) {
    if (!status.ok() || stored.contains(identity)) {
      intake_.in_flight_.End(identity, status);
      continue;
    }
    options_.quotas->Charge(one->charge, bucket_.get(),
                            options_.quotas->BucketOfJob(one->event.source.job).get());
    options_.store->AppendEvent(
        {}, one->event, [intake = &intake_, identity = identity](const absl::Status& ended) {
          intake->in_flight_.End(identity, ended);
        });
  }
}

void Intake::WriteEvents(const ForeignEvents& write, const std::string& sender,
                         const security::RightsPtr& rights, Done done) {
  EventsRequest request(this, write, rights);
  if (auto status = request.Prepare(sender); !status.ok()) {
    return done({.status = std::move(status)});
  }
  request.Send(std::move(done));
}

}  // namespace tacho::server::interop
