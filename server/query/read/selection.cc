// Translates selectors, ranges and what is stored between the protocol and the store. It checks
// every field here, so that the queries themselves meet only valid ones.
#include "server/query/read/selection.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/nearest.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::query {
namespace {

constexpr size_t kNamesSuggested = 3;

absl::Status CheckSelector(const v1::Selector& selector) {
  if (selector.job().empty()) return errors::InvalidFieldError("selector.job", "is required");
  if (selector.metrics_size() > kMaxSelectorMetrics) {
    return errors::InvalidFieldError("selector.metrics",
                                     absl::StrCat("at most ", kMaxSelectorMetrics, " names"));
  }
  if (selector.matchers_size() > kMaxSelectorMatchers) {
    return errors::InvalidFieldError("selector.matchers",
                                     absl::StrCat("at most ", kMaxSelectorMatchers, " conditions"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<storage::Matcher> MakeMatcher(const v1::Matcher& matcher, absl::string_view field) {
  if (matcher.label().empty())
    return errors::InvalidFieldError(absl::StrCat(field, ".label"), "is required");
  using Op = storage::Matcher::Op;
  Op op;
  switch (matcher.op()) {
    case v1::Matcher::OP_EQUAL:
      op = Op::kEqual;
      break;
    case v1::Matcher::OP_NOT_EQUAL:
      op = Op::kNotEqual;
      break;
    case v1::Matcher::OP_MATCHES:
      op = Op::kMatches;
      break;
    case v1::Matcher::OP_NOT_MATCHES:
      op = Op::kNotMatches;
      break;
    default:
      return errors::InvalidFieldError(
          absl::StrCat(field, ".op"),
          "must be one of OP_EQUAL, OP_NOT_EQUAL, OP_MATCHES, OP_NOT_MATCHES");
  }
  auto made = storage::Matcher::Create(matcher.label(), op, matcher.value());
  if (!made.ok())
    return errors::InvalidFieldError(absl::StrCat(field, ".value"), made.status().message());
  return made;
}

absl::StatusOr<Selection> MakeSelection(const v1::Selector& selector) {
  TACHO_RETURN_IF_ERROR(CheckSelector(selector));
  Selection selection;
  selection.selector.job = selector.job();
  if (selector.has_part()) {
    TACHO_ASSIGN_OR_RETURN(selection.part, ReadHostPart(selector.part(), "selector.part"));
  }
  selection.selector.metrics.assign(selector.metrics().begin(), selector.metrics().end());
  for (const v1::Matcher& proto : selector.matchers()) {
    TACHO_ASSIGN_OR_RETURN(storage::Matcher matcher, MakeMatcher(proto, "selector.matchers"));
    if (matcher.label() == "attempt") {
      TACHO_RETURN_IF_ERROR(selection.attempts.Add(matcher));
    } else {
      selection.selector.matchers.push_back(std::move(matcher));
    }
  }
  return selection;
}

absl::Status ChooseAttempts(const storage::Store& store, v1::Attempts choice,
                            Selection* selection) {
  if (!v1::Attempts_IsValid(choice)) {
    return errors::InvalidFieldError(
        "attempts", "must be one of ATTEMPTS_ALL, ATTEMPTS_EFFECTIVE, ATTEMPTS_LATEST");
  }
  if (choice == v1::ATTEMPTS_UNSPECIFIED || choice == v1::ATTEMPTS_ALL) return absl::OkStatus();
  const auto attempts = store.Attempts(selection->selector.job);
  if (!attempts.ok()) return attempts.status();
  if (choice == v1::ATTEMPTS_EFFECTIVE) {
    selection->attempts.LeaveOutSuperseded(
        std::make_shared<const Timeline>(Timeline::Of(*attempts)));
  } else if (attempts->empty()) {
    selection->attempts.Require(std::nullopt);
  } else {
    selection->attempts.Require(attempts->back().attempt);
  }
  return absl::OkStatus();
}

absl::Status SetTimeRange(const v1::TimeRange& range, int64_t* begin_ns, int64_t* end_ns) {
  *begin_ns = range.begin_unix_ns();
  if (range.end_unix_ns() == 0) return absl::OkStatus();
  *end_ns = range.end_unix_ns();
  if (*end_ns > *begin_ns) return absl::OkStatus();
  return errors::InvalidFieldError("time.end_unix_ns",
                                   "must be after time.begin_unix_ns, or 0 for no end");
}

absl::StatusOr<std::vector<storage::SeriesPtr>> FindSelected(const storage::Store& store,
                                                             const Selection& selection,
                                                             uint64_t limit) {
  auto series = store.FindSeries(selection.selector, limit);
  if (absl::IsResourceExhausted(series.status())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "more than max_series = ", limit, " series match: name metrics, add matchers, ",
        "or raise max_series (up to the collector's query.max_series)"));
  }
  if (series.ok() && series->empty() && !store.FindJob(selection.selector.job).has_value()) {
    return NoSuchJob(store, selection.selector.job);
  }
  if (series.ok()) KeepPart(selection.part, &*series);
  return series;
}

absl::Status NoSuchJob(const storage::Store& store, absl::string_view job) {
  std::vector<std::string> names;
  for (storage::JobSummary& summary : store.Jobs()) names.push_back(std::move(summary.name));
  const std::vector<std::string> nearest = NearestNames(job, names, kNamesSuggested);
  std::string text = absl::StrCat("no job \"", job, "\"");
  if (!nearest.empty()) {
    absl::StrAppend(&text, "; did you mean \"", absl::StrJoin(nearest, "\", \""), "\"?");
  }
  return absl::NotFoundError(text);
}

void ToProto(const storage::Metric& metric, v1::Metric* proto) {
  proto->set_name(metric.name);
  proto->set_type(static_cast<v1::MetricType>(metric.type));  // The numbers are the same.
  proto->set_unit(metric.unit);
  proto->set_help(metric.help);
}

void ToProto(const storage::Series& series, v1::SeriesInfo* proto) {
  ToProto(*series.metric, proto->mutable_metric());
  proto->set_job(series.source->job);
  if (series.source->task.has_value()) proto->set_task(*series.source->task);
  proto->set_host(series.source->host);
  for (const auto& [name, value] : *series.labels) {
    v1::Label* label = proto->add_labels();
    label->set_name(name.data(), name.size());
    label->set_value(value.data(), value.size());
  }
}

absl::StatusOr<storage::ReadOptions> MakeReadOptions(const v1::TimeRange* time,
                                                     const v1::StepRange* steps) {
  storage::ReadOptions read;
  if (time != nullptr) {
    TACHO_RETURN_IF_ERROR(SetTimeRange(*time, &read.begin_ns, &read.end_ns));
  }
  if (steps == nullptr) return read;
  if (steps->has_begin() && steps->has_end() && steps->begin() > steps->end()) {
    return errors::InvalidFieldError("steps.end", "must not be below steps.begin");
  }
  // Rows without a step are in no range of them.
  read.first_step = steps->has_begin() ? steps->begin() : storage::kNoStep + 1;
  if (steps->has_end()) read.last_step = steps->end();
  return read;
}

void ToProto(const storage::Event& event, v1::RecordedEvent* proto) {
  v1::Source* source = proto->mutable_source();
  source->set_job(event.source.job);
  if (event.source.task.has_value()) source->set_task(*event.source.task);
  source->set_attempt(event.source.attempt);
  source->set_host(event.source.host);
  proto->set_time_unix_ns(event.time_ns);
  if (event.step.has_value()) proto->set_step(*event.step);
  proto->set_kind(event.kind);
  proto->set_message(event.message);
  proto->mutable_fields()->insert(event.fields.begin(), event.fields.end());
}

}  // namespace tacho::server::query
