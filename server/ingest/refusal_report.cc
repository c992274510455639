// An agent's Ack has the first example and detail of each reason, so those texts are made only
// where they are asked for: a stream may have every batch refused.
#include "server/ingest/refusal_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/limits/limit_text.h"

namespace tacho::server::ingest {

v1::Reject::Reason RejectReasonOf(storage::Limit limit) {
  switch (limit) {
    case storage::Limit::kJobs:
      return v1::Reject::REASON_JOBS_LIMIT;
    case storage::Limit::kLabels:
    case storage::Limit::kLabelValues:
      return v1::Reject::REASON_LABEL_LIMIT;
    case storage::Limit::kMetricNameBytes:
    case storage::Limit::kLabelNameBytes:
    case storage::Limit::kLabelValueBytes:
    case storage::Limit::kAllowedLabels:
    case storage::Limit::kNames:
      return v1::Reject::REASON_LABEL_INVALID;
    case storage::Limit::kMetricSeries:
      return v1::Reject::REASON_METRIC_LIMIT;
    case storage::Limit::kJobSeries:
    case storage::Limit::kOverflowSeries:
    case storage::Limit::kLayoutColumns:
      return v1::Reject::REASON_JOB_LIMIT;
    case storage::Limit::kTextBytes:
    case storage::Limit::kSeries:
    case storage::Limit::kStoredSeries:
      return v1::Reject::REASON_SERIES_LIMIT;
  }
  return v1::Reject::REASON_UNSPECIFIED;
}

RefusalReport::RefusalReport(Options options) : options_(std::move(options)) {
  TACHO_CHECK(options_.admission != nullptr && options_.metrics != nullptr);
  TACHO_CHECK(options_.limiting != nullptr && options_.log != nullptr);
}

void RefusalReport::LayoutDefined(const std::string& job, const StreamLayout& layout) {
  for (const StreamLayout::Concerned& one : layout.concerned) {
    options_.limiting->Count({.job = job,
                              .name = one.name,
                              .limit = one.limit,
                              .action = one.action,
                              .series = one.series,
                              .example = one.example,
                              .detail = one.detail,
                              .last = options_.now()});
    if (one.action == storage::LimitAction::kObserve) continue;
    Tell({.reason = RejectReasonOf(one.limit),
          .folded = one.action == storage::LimitAction::kFold,
          .series = one.series},
         [&](v1::Reject* reject) {
           reject->set_example(one.example);
           reject->set_detail(one.detail);
         });
  }
}

void RefusalReport::BatchSelected(const StreamLayout& layout, const RowSelection& selection,
                                  uint64_t rows_sent) {
  for (const StreamLayout::Concerned& one : layout.concerned) {
    if (one.action == storage::LimitAction::kObserve) continue;
    const uint64_t samples = rows_sent * one.series;
    if (one.action == storage::LimitAction::kFold) {
      Folded(one, samples);
    } else {
      Refused(layout.job_name, RejectReasonOf(one.limit), samples, one.example,
              [&one] { return one.detail; });
    }
  }
  Refused(layout.job_name, v1::Reject::REASON_FUTURE,
          selection.future_rows() * layout.stored_width(), layout.first_series,
          [&] { return FutureDetail(); });
  Refused(layout.job_name, v1::Reject::REASON_TOO_OLD, selection.old_rows() * layout.stored_width(),
          layout.first_series, [&] { return TooOldDetail(); });
}

void RefusalReport::EventRefused(const storage::Event& event, bool future) {
  Refused(event.source.job, future ? v1::Reject::REASON_FUTURE : v1::Reject::REASON_TOO_OLD, 1,
          event.kind, [&] { return future ? FutureDetail() : TooOldDetail(); });
}

storage::LimitAction RefusalReport::JobWithoutRoom(const std::string& job) {
  const auto policy = options_.limiting->policy();
  const bool observed = policy->totals().action == storage::LimitAction::kObserve;
  const auto action = observed ? storage::LimitAction::kObserve : storage::LimitAction::kReject;
  const storage::Breach breach{.limit = storage::Limit::kJobs};
  std::string detail = limits::DescribeLimit(*policy, breach, "");
  options_.limiting->Count({.job = job,
                            .limit = storage::Limit::kJobs,
                            .action = action,
                            .series = 1,
                            .example = "an event or attributes",
                            .detail = detail,
                            .last = options_.now()});
  if (observed) return action;
  Refused(job, v1::Reject::REASON_JOBS_LIMIT, 1, absl::StrCat("an event or attributes of ", job),
          [&] { return detail; });
  return action;
}

void RefusalReport::Folded(const StreamLayout::Concerned& series, uint64_t samples) {
  const v1::Reject::Reason reason = RejectReasonOf(series.limit);
  options_.metrics->SamplesFolded(samples);
  Log("samples folded", reason, samples, series.example);
  Tell({.reason = reason, .folded = true, .samples = samples}, [&](v1::Reject* reject) {
    reject->set_example(series.example);
    reject->set_detail(series.detail);
  });
}

void RefusalReport::Refused(const std::string& job, v1::Reject::Reason reason, uint64_t samples,
                            const std::string& example, absl::FunctionRef<std::string()> detail) {
  if (samples == 0) return;
  options_.metrics->SamplesRejected(reason, samples);
  if (!job.empty()) {
    options_.limiting->job_refusals().Add(job, RejectReasonName(reason), samples, options_.now(),
                                          [&](limits::JobRefusal* refusal) {
                                            refusal->example = example;
                                            refusal->detail = detail();
                                          });
  }
  Log("samples refused", reason, samples, example);
  Tell({.reason = reason, .samples = samples}, [&](v1::Reject* reject) {
    reject->set_example(example);
    reject->set_detail(detail());
  });
}

void RefusalReport::Tell(const AckCoalescer::Refused& refused,
                         absl::FunctionRef<void(v1::Reject*)> describe) {
  if (options_.acks != nullptr) options_.acks->Rejected(refused, describe);
}

void RefusalReport::Log(const char* message, v1::Reject::Reason reason, uint64_t samples,
                        const std::string& example) const {
  options_.log->Limited(log::Level::kWarn, message,
                        {{"agent", agent_id_},
                         {"reason", v1::Reject::Reason_Name(reason)},
                         {"samples", samples},
                         {"example", example}});
}

std::string RefusalReport::FutureDetail() const {
  const auto max_future = absl::Nanoseconds(options_.admission->limits().max_future());
  return absl::StrCat("more than ", absl::FormatDuration(max_future),
                      " ahead of the collector's clock; set the host's clock");
}

std::string RefusalReport::TooOldDetail() const {
  return absl::StrCat("older than storage.retention, ",
                      absl::FormatDuration(options_.admission->retention()),
                      "; raise it, or leave what is older out");
}

}  // namespace tacho::server::ingest
