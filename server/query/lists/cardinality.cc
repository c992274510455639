#include "server/query/lists/cardinality.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

constexpr uint32_t kDefaultTop = 20;
constexpr uint32_t kMaxTop = 1000;

void Fill(const std::string& job, absl::string_view name, uint64_t used, uint64_t limit,
          v1::CardinalityUse* use) {
  use->set_job(job);
  use->set_name(std::string(name));
  use->set_used(used);
  use->set_limit(limit);
}

void Fill(const limits::Refusals& refusals, v1::CardinalityRefusal* out) {
  out->set_job(refusals.job);
  out->set_name(refusals.name);
  out->set_limit(std::string(storage::LimitKey(refusals.limit)));
  out->set_action(std::string(storage::ActionName(refusals.action)));
  out->set_series(refusals.series);
  out->set_too_many(refusals.too_many);
  out->set_example(refusals.example);
  out->set_detail(refusals.detail);
  out->set_last_unix_ns(absl::ToUnixNanos(refusals.last));
}

}  // namespace

absl::Status Cardinality(const storage::Store& store, const limits::RefusalLedger* refusals,
                         const v1::CardinalityRequest& request, v1::CardinalityResponse* response) {
  if (request.top() > kMaxTop) {
    return absl::InvalidArgumentError(
        absl::StrCat("top: ", request.top(), " is more than ", kMaxTop));
  }
  const size_t top = request.top() == 0 ? kDefaultTop : request.top();
  if (refusals != nullptr) {
    for (const limits::Refusals& one : refusals->Top(request.job(), top)) {
      Fill(one, response->add_refusals());
    }
  }
  // A job that was refused altogether is not there, and has refusals all the same.
  const bool refused_only = response->refusals_size() > 0 && !request.job().empty() &&
                            !store.FindJob(request.job()).has_value();
  if (refused_only) return absl::OkStatus();
  const auto report = store.Cardinality(request.job(), top);
  if (absl::IsNotFound(report.status())) return NoSuchJob(store, request.job());
  if (!report.ok()) return report.status();
  for (const auto& one : report->totals) {
    Fill("", storage::LimitKey(one.limit), one.used, one.bound, response->add_totals());
  }
  for (const auto& one : report->jobs) {
    Fill(one.name, "", one.series, one.bound, response->add_jobs());
  }
  for (const auto& one : report->metrics) {
    Fill(one.job, one.metric, one.series, one.bound, response->add_metrics());
  }
  for (const auto& one : report->labels) {
    Fill(one.job, one.name, one.values, one.bound, response->add_labels());
  }
  response->set_jobs_left_out(report->jobs_left_out);
  return absl::OkStatus();
}

}  // namespace tacho::server::query
