// A request with events is worked through in passes: every event is mapped, admitted and checked
// for rights; then times and room for jobs; only then are events handed to the store, so that a
// request that is refused as a whole leaves no event behind.
#include <algorithm>
#include <cstdint>
#include <map>
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
#include "server/interop/passing/passed_events.h"
#include "server/interop/passing/settling.h"

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
  EventsRequest(Intake* intake, const ForeignEvents& write, const Sender& sender)
      : intake_(*intake),
        options_(intake->options_),
        write_(write),
        sender_(sender),
        can_pass_(intake->CanPass(sender)) {}

  // Everything that can refuse the request as a whole.
  absl::Status Prepare() {
    bucket_ = options_.quotas->BucketOfAgent(sender_.Name());
    TACHO_RETURN_IF_ERROR(intake_.CheckRates(bucket_.get(), nullptr));
    const auto mapping = intake_.mapping();
    for (uint32_t i = 0; i < write_.events.size(); ++i) {
      TACHO_RETURN_IF_ERROR(Admit(*mapping, i));
    }
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
      TACHO_RETURN_IF_ERROR(CheckJob(job));
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

  // Hands the events to the store, and passes on what other members keep.
  void Send(Done done);

 private:
  struct Admitted {
    storage::Event event;
    uint64_t charge = 0;
  };
  // By identity: events of one job and time that this request brings to the store.
  using First = absl::flat_hash_map<std::string, const Admitted*>;

  // `index` is the event's in write_.
  absl::Status Admit(const LabelMapping& mapping, uint32_t index);
  absl::Status CheckJob(const std::string& job) const {
    return options_.admission->CheckRights(sender_.rights->CheckJob(job, "job"));
  }
  // Whether another member of the cluster keeps its job: then the event is passed on or refused.
  absl::StatusOr<bool> GoesElsewhere(const storage::Event& event, uint32_t index);
  // Each returns whether the event is refused.
  bool RefuseTime(const storage::Event& event, bool future);
  bool RefuseJob(const storage::Event& event);
  void Refused(absl::string_view why);
  void Append(const First& first);

  Intake& intake_;
  const IntakeOptions& options_;
  const ForeignEvents& write_;
  const Sender& sender_;
  const bool can_pass_;
  std::shared_ptr<edge::TokenBucket> bucket_;
  std::vector<Admitted> events_;
  std::set<std::string> jobs_;
  std::map<uint32_t, std::vector<uint32_t>> passed_;  // By shard: events that are passed on.
  uint64_t elsewhere_ = 0;  // Events that other members keep, and that are not passed on.
  WriteOutcome outcome_;
};

absl::Status Intake::EventsRequest::Admit(const LabelMapping& mapping, uint32_t index) {
  const ForeignEvent& foreign = write_.events[index];
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
    if (admitted.ok()) {
      TACHO_ASSIGN_OR_RETURN(const bool elsewhere, GoesElsewhere(*admitted, index));
      if (elsewhere) return absl::OkStatus();
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

absl::StatusOr<bool> Intake::EventsRequest::GoesElsewhere(const storage::Event& event,
                                                          uint32_t index) {
  const cluster::Membership* const membership = options_.admission->membership();
  const auto& [job, host] = std::tie(event.source.job, event.source.host);
  if (membership == nullptr || membership->Keeps(job, host)) return false;
  if (can_pass_) {
    TACHO_RETURN_IF_ERROR(CheckJob(job));
    passed_[membership->ShardOf(job, host)].push_back(index);
  } else {
    ++elsewhere_;
    Refused(membership->CheckKeeps(job, host).message());
  }
  return true;
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
  std::vector<std::pair<uint32_t, v1::StoreEventsRequest>> passed;
  for (const auto& [shard, events] : passed_) {
    for (auto& message : PassedEvents(write_, events)) {
      passed.emplace_back(shard, std::move(message));
    }
  }
  const auto settling = std::make_shared<Settling>(
      std::move(outcome_), events_.size() + passed.size() + 1, std::move(done));
  for (auto& [shard, message] : passed) {
    options_.elsewhere->StoreEvents(
        shard, sender_, std::move(message),
        [settling](const WriteOutcome& outcome) { settling->Add(outcome); });
  }
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

void Intake::WriteEvents(const ForeignEvents& write, const Sender& sender, Done done) {
  EventsRequest request(this, write, sender);
  if (auto status = request.Prepare(); !status.ok()) {
    return done({.status = std::move(status)});
  }
  request.Send(std::move(done));
}

}  // namespace tacho::server::interop
