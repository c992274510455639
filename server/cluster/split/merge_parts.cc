#include "server/cluster/split/merge_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/listings.h"

namespace tacho::server::cluster {
namespace {

// Works for any message with these two fields, of which 0 means that nothing is stored.
template <typename Message>
void IncludeSeen(const Message& from, Message* to) {
  if (from.first_seen_unix_ns() == 0 && from.last_seen_unix_ns() == 0) return;
  const bool has = to->first_seen_unix_ns() != 0 || to->last_seen_unix_ns() != 0;
  to->set_first_seen_unix_ns(has ? std::min(to->first_seen_unix_ns(), from.first_seen_unix_ns())
                                 : from.first_seen_unix_ns());
  to->set_last_seen_unix_ns(has ? std::max(to->last_seen_unix_ns(), from.last_seen_unix_ns())
                                : from.last_seen_unix_ns());
}

// Running, silent, ended; their numbers ascend so. 0 is none.
v1::JobState Livelier(v1::JobState a, v1::JobState b) {
  if (a == v1::JOB_STATE_UNSPECIFIED) return b;
  return b == v1::JOB_STATE_UNSPECIFIED ? a : std::min(a, b);
}

// Both are in the order of `key`; so is the result.
template <typename Message, typename Key>
void MergeInOrder(google::protobuf::RepeatedPtrField<Message>* from, const Key& key,
                  google::protobuf::RepeatedPtrField<Message>* to) {
  google::protobuf::RepeatedPtrField<Message> merged;
  merged.Reserve(from->size() + to->size());
  auto a = to->begin();
  auto b = from->begin();
  while (a != to->end() || b != from->end()) {
    const bool take_a = b == from->end() || (a != to->end() && !(key(*b) < key(*a)));
    *merged.Add() = std::move(take_a ? *a++ : *b++);
  }
  to->Swap(&merged);
}

// By chip, numbers by value.
auto ChipKey(const v1::Chip& chip) {
  uint64_t number = 0;
  const bool is_number = absl::SimpleAtoi(chip.chip(), &number);
  return std::make_tuple(absl::string_view(chip.host()), !is_number, number,
                         absl::string_view(chip.chip()));
}

void AddAttempt(const v1::Attempt& from, v1::Attempt* to) {
  IncludeSeen(from, to);
  to->set_tasks(std::max(to->tasks(), from.tasks()));
  to->set_hosts(to->hosts() + from.hosts());
  to->mutable_attributes()->insert(from.attributes().begin(), from.attributes().end());
  if (from.has_ended_unix_ns() &&
      (!to->has_ended_unix_ns() || from.ended_unix_ns() > to->ended_unix_ns())) {
    to->set_ended_unix_ns(from.ended_unix_ns());
    to->set_end_message(from.end_message());
    *to->mutable_end_fields() = from.end_fields();
  }
  to->set_state(Livelier(to->state(), from.state()));
}

template <typename Message>
void Cut(size_t most, google::protobuf::RepeatedPtrField<Message>* field) {
  const auto size = static_cast<size_t>(field->size());
  if (size > most) field->DeleteSubrange(static_cast<int>(most), static_cast<int>(size - most));
}

}  // namespace

void AddJob(const v1::Job& from, v1::Job* to) {
  // A member that has copies alone calls the job silent, which says nothing.
  if (to->series() == 0) {
    to->set_state(from.state());
  } else if (from.series() > 0) {
    to->set_state(Livelier(to->state(), from.state()));
  }
  if (to->name().empty()) to->set_name(from.name());
  IncludeSeen(from, to);
  if (from.has_last_step() && (!to->has_last_step() || from.last_step() > to->last_step())) {
    to->set_last_step(from.last_step());
  }
  to->set_attempts(std::max(to->attempts(), from.attempts()));
  to->set_metrics(std::max(to->metrics(), from.metrics()));
  to->set_tasks(std::max(to->tasks(), from.tasks()));
  to->set_hosts(to->hosts() + from.hosts());
  to->set_series(to->series() + from.series());
  to->set_refused_samples(to->refused_samples() + from.refused_samples());
  if (from.has_marks() && !to->has_marks()) *to->mutable_marks() = from.marks();
}

void AddJobDetail(v1::GetJobResponse from, v1::GetJobResponse* to) {
  AddJob(from.job(), to->mutable_job());
  for (v1::Attempt& attempt : *from.mutable_attempts()) {
    auto* const attempts = to->mutable_attempts();
    const auto known = std::find_if(attempts->begin(), attempts->end(), [&](const auto& one) {
      return one.attempt() == attempt.attempt();
    });
    if (known != attempts->end()) {
      AddAttempt(attempt, &*known);
    } else {
      *attempts->Add() = std::move(attempt);
    }
  }
  std::sort(to->mutable_attempts()->begin(), to->mutable_attempts()->end(),
            [](const auto& a, const auto& b) { return a.attempt() < b.attempt(); });
  MergeInOrder(
      from.mutable_tasks(),
      [](const v1::Task& one) {
        return std::make_tuple(one.has_task(), one.task(), absl::string_view(one.host()));
      },
      to->mutable_tasks());
  MergeInOrder(
      from.mutable_hosts(), [](const v1::Host& one) { return absl::string_view(one.name()); },
      to->mutable_hosts());
  MergeInOrder(from.mutable_chips(), ChipKey, to->mutable_chips());
  MergeInOrder(
      from.mutable_incarnations(),
      [](const v1::Incarnation& one) {
        return std::make_tuple(one.attempt(), one.has_task(), one.task(),
                               absl::string_view(one.host()));
      },
      to->mutable_incarnations());
  std::map<std::string, v1::Metric> metrics;
  for (const auto* all : {&to->metrics(), &from.metrics()}) {
    for (const v1::Metric& metric : *all) metrics.emplace(metric.name(), metric);
  }
  to->clear_metrics();
  for (auto& [name, metric] : metrics) *to->add_metrics() = std::move(metric);
  to->mutable_job()->set_metrics(static_cast<uint32_t>(to->metrics_size()));
  if (to->timeline().empty()) to->mutable_timeline()->Swap(from.mutable_timeline());
  to->set_chips_total(to->chips_total() + from.chips_total());
  to->set_incarnations_total(to->incarnations_total() + from.incarnations_total());
  for (v1::JobRefusal& refusal : *from.mutable_refusals()) {
    auto* const refusals = to->mutable_refusals();
    const auto known = std::find_if(refusals->begin(), refusals->end(), [&](const auto& one) {
      return one.reason() == refusal.reason();
    });
    if (known == refusals->end()) {
      *refusals->Add() = std::move(refusal);
      continue;
    }
    const uint64_t samples = known->samples() + refusal.samples();
    if (refusal.last_unix_ns() > known->last_unix_ns()) *known = std::move(refusal);
    known->set_samples(samples);
  }
  std::stable_sort(to->mutable_refusals()->begin(), to->mutable_refusals()->end(),
                   [](const auto& a, const auto& b) { return a.samples() > b.samples(); });
}

void CutEntities(const v1::GetJobRequest& request, v1::GetJobResponse* response) {
  const size_t most =
      request.max_entities() == 0 ? query::kDefaultEntities : request.max_entities();
  Cut(most, response->mutable_tasks());
  Cut(most, response->mutable_hosts());
  Cut(most, response->mutable_chips());
  Cut(most, response->mutable_incarnations());
}

void AddMetrics(const v1::ListMetricsResponse& from, v1::ListMetricsResponse* to) {
  std::map<std::string, v1::MetricUse> uses;
  for (v1::MetricUse& use : *to->mutable_metrics()) uses[use.metric().name()] = std::move(use);
  for (const v1::MetricUse& use : from.metrics()) {
    const auto [known, is_new] = uses.try_emplace(use.metric().name(), use);
    if (is_new) continue;
    known->second.set_series(known->second.series() + use.series());
    std::set<std::string> labels(known->second.labels().begin(), known->second.labels().end());
    labels.insert(use.labels().begin(), use.labels().end());
    known->second.mutable_labels()->Assign(labels.begin(), labels.end());
  }
  to->clear_metrics();
  for (auto& [name, use] : uses) *to->add_metrics() = std::move(use);
}

absl::StatusOr<v1::LabelValuesResponse> MergeValues(
    const v1::LabelValuesRequest& request, const std::vector<v1::LabelValuesResponse>& parts) {
  const bool as_numbers = request.label() == "attempt" || request.label() == "task";
  std::map<std::pair<size_t, std::string>, uint64_t> series;
  for (const v1::LabelValuesResponse& part : parts) {
    for (const v1::LabelValue& one : part.values()) {
      series[{as_numbers ? one.value().size() : 0, one.value()}] += one.series();
    }
  }
  const uint64_t most =
      request.max_values() == 0 ? query::kDefaultLabelValues : request.max_values();
  if (series.size() > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are more than max_values = ", most,
                     " values: name metrics, add matchers, or raise max_values"));
  }
  v1::LabelValuesResponse merged;
  for (const auto& [value, count] : series) {
    v1::LabelValue* const proto = merged.add_values();
    proto->set_value(value.second);
    proto->set_series(count);
  }
  return merged;
}

}  // namespace tacho::server::cluster
