// An answer has the jobs that match, in the fleet's order. It
// leaves out those that the reader has already and that have not changed since. A revision is the
// fleet's with a mark of the question, so that the revision of another question, of another reader
// or of another process is not known.
#include "server/view/fleet_answer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/lists/conditions_query.h"
#include "server/query/lists/goodput_query.h"
#include "server/query/read/job_marks.h"

namespace tacho::server::view {
namespace {

constexpr int kMaxConditionsShown = 3;
constexpr int kMarkBits = 20;  // One look a second keeps a revision with them below 2^53.
constexpr uint64_t kMarkMask = (uint64_t{1} << kMarkBits) - 1;

// Two answers are comparable if these are equal: all of the request but the revision, and the
// rights.
std::string QuestionOf(const v1::FleetRequest& request, const security::Rights& rights,
                       uint64_t salt) {
  v1::FleetRequest asked = request;
  asked.clear_since_revision();
  return absl::StrCat(salt, "\n", rights.name(), "\n", rights.jobs_pattern(), "\n",
                      asked.SerializeAsString());
}

uint64_t MarkedRevision(uint64_t revision, const std::string& question) {
  return (revision << kMarkBits) | (absl::HashOf(question) & kMarkMask);
}

// Nullopt: of another question.
std::optional<uint64_t> UnmarkedRevision(uint64_t marked, const std::string& question) {
  if ((marked & kMarkMask) != (absl::HashOf(question) & kMarkMask)) return std::nullopt;
  return marked >> kMarkBits;
}

// Calls use(outline) with the row's outline, wherever it is; a job that has expired has none.
template <typename Use>
absl::Status WithOutline(const storage::Store& store, const FleetRow& row, bool hosts, Use use) {
  if (row.outline != nullptr) {
    use(*row.outline);
    return absl::OkStatus();
  }
  const auto outline = store.Outline(row.job.name(), hosts);
  if (!outline.ok()) {
    return absl::IsNotFound(outline.status()) ? absl::OkStatus() : outline.status();
  }
  use(*outline);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FleetRowPtr>> MatchingRows(const storage::Store& store,
                                                      const Fleet& fleet,
                                                      const query::JobFilter& filter,
                                                      const security::Rights& rights,
                                                      const query::QueryControl& control) {
  std::vector<FleetRowPtr> rows;
  for (const FleetRowPtr& row : fleet.rows) {
    TACHO_RETURN_IF_ERROR(control.Check());
    const std::string& name = row->job.name();
    if (!filter.WantsState(row->job.state()) || !filter.WantsName(name)) continue;
    if (!rights.MayTouch(name)) continue;
    bool wanted = !filter.needs_outline();
    if (!wanted) {
      TACHO_RETURN_IF_ERROR(WithOutline(
          store, *row, filter.needs_hosts(),
          [&](const storage::JobOutline& outline) { wanted = filter.WantsOutline(outline); }));
    }
    if (wanted) rows.push_back(row);
  }
  return rows;
}

void CountRunning(const FleetRow& row, v1::FleetTotals* totals) {
  totals->set_running(totals->running() + 1);
  totals->set_chips(totals->chips() + row.chips);
  if (row.conditions.empty()) return;
  const conditions::Severity worst = row.conditions[0]->finding.severity;
  if (worst == conditions::Severity::kCritical) {
    totals->set_critical(totals->critical() + 1);
    totals->set_chips_sick(totals->chips_sick() + row.chips);
  } else if (worst == conditions::Severity::kWarning) {
    totals->set_warning(totals->warning() + 1);
  }
}

void FillTotals(const std::vector<FleetRowPtr>& rows, v1::FleetTotals* totals) {
  double productive_ns = 0;
  double wall_ns = 0;
  totals->set_jobs(static_cast<uint32_t>(rows.size()));
  for (const FleetRowPtr& row : rows) {
    switch (row->job.state()) {
      case v1::JOB_STATE_RUNNING:
        break;
      case v1::JOB_STATE_SILENT:
        totals->set_silent(totals->silent() + 1);
        continue;
      default:
        totals->set_ended(totals->ended() + 1);
        continue;
    }
    CountRunning(*row, totals);
    if (row->goodput == nullptr) continue;
    const goodput::Ledger& ledger = row->goodput->total;
    productive_ns += static_cast<double>(ledger[goodput::GoodputBucket::kProductiveStep]);
    wall_ns += static_cast<double>(ledger.wall_ns());
  }
  if (wall_ns <= 0) return;
  totals->set_goodput_ratio(productive_ns / wall_ns);
  totals->set_productive_seconds(productive_ns / 1e9);
  totals->set_wall_seconds(wall_ns / 1e9);
}

absl::Status FillAttributes(const storage::Store& store, const FleetRow& row,
                            const v1::FleetRequest& request, v1::FleetJob* to) {
  if (request.attributes().empty()) return absl::OkStatus();
  return WithOutline(store, row, /*hosts=*/false, [&](const storage::JobOutline& outline) {
    for (const std::string& name : request.attributes()) {
      const auto& from = query::IsMark(name) ? outline.merged_attributes : outline.attributes;
      const auto found = from.find(name);
      if (found != from.end()) (*to->mutable_attributes())[name] = found->second;
    }
  });
}

absl::Status FillJob(const storage::Store& store, const FleetRow& row,
                     const v1::FleetRequest& request, v1::FleetJob* to) {
  *to->mutable_job() = row.job;
  to->set_attempt(row.attempt);
  to->set_chips(row.chips);
  to->set_rank(row.rank);
  to->set_conditions_true(static_cast<uint32_t>(row.conditions.size()));
  for (const auto& condition : row.conditions) {
    if (to->conditions_size() == kMaxConditionsShown) break;
    query::FillCondition(*condition, to->add_conditions());
  }
  if (row.goodput != nullptr) {
    if (row.goodput->has_steps) query::ToProto(row.goodput->steps, to->mutable_steps());
    const auto ratio = goodput::GoodputRatio(row.goodput->total);
    if (ratio.has_value()) to->set_goodput_ratio(*ratio);
    const auto points = Sparkline(row.goodput->step_times, request.spark_points());
    to->mutable_step_times()->Assign(points.begin(), points.end());
  }
  return FillAttributes(store, row, request, to);
}

JobNames NamesOf(const std::vector<FleetRowPtr>& rows) {
  JobNames names;
  names.reserve(rows.size());
  for (const FleetRowPtr& row : rows) names.push_back(row->job.name());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<FleetPlan> MakeFleetPlan(const v1::FleetRequest& request) {
  if (request.spark_points() > kMaxSparkPoints) {
    return errors::InvalidFieldError("spark_points", absl::StrCat("is at most ", kMaxSparkPoints));
  }
  if (request.max_jobs() > kMaxFleetJobs) {
    return errors::InvalidFieldError("max_jobs", absl::StrCat("is at most ", kMaxFleetJobs));
  }
  if (request.attributes_size() > kMaxFleetAttributes) {
    return errors::InvalidFieldError("attributes",
                                     absl::StrCat("at most ", kMaxFleetAttributes, " names"));
  }
  TACHO_ASSIGN_OR_RETURN(auto filter, query::JobFilter::Create(request));
  return FleetPlan{request, std::move(filter)};
}

absl::Status AnswerFleet(const storage::Store& store, const Fleet& fleet, const FleetPlan& plan,
                         const security::Rights& rights, uint64_t salt,
                         const query::QueryControl& control, AnsweredJobs* answered,
                         v1::FleetResponse* response) {
  const v1::FleetRequest& request = plan.request;
  TACHO_ASSIGN_OR_RETURN(auto rows, MatchingRows(store, fleet, plan.filter, rights, control));
  FillTotals(rows, response->mutable_totals());
  if (rights.MayTouch(kHostsJob)) {
    if (fleet.chips_idle.has_value()) {
      response->mutable_totals()->set_chips_idle(*fleet.chips_idle);
    }
    if (request.hosts()) *response->mutable_hosts() = fleet.hosts;
  }
  const size_t most = request.max_jobs() == 0 ? kDefaultFleetJobs : request.max_jobs();
  if (rows.size() > most) {
    response->set_left_out(static_cast<uint32_t>(rows.size() - most));
    rows.resize(most);
  }
  const std::string question = QuestionOf(request, rights, salt);
  const auto since = UnmarkedRevision(request.since_revision(), question);
  const auto before = since.has_value() ? answered->Find(question, *since) : nullptr;
  JobNames names = NamesOf(rows);
  if (before != nullptr) {
    std::set_difference(before->begin(), before->end(), names.begin(), names.end(),
                        google::protobuf::RepeatedFieldBackInserter(response->mutable_gone()));
  }
  for (const FleetRowPtr& row : rows) {
    const bool is_known = before != nullptr && row->revision <= *since &&
                          std::binary_search(before->begin(), before->end(), row->job.name());
    if (is_known) continue;
    TACHO_RETURN_IF_ERROR(control.Check());
    TACHO_RETURN_IF_ERROR(FillJob(store, *row, request, response->add_jobs()));
  }
  response->set_complete(before == nullptr);
  response->set_revision(MarkedRevision(fleet.revision, question));
  answered->Remember(question, fleet.revision, std::move(names));
  return absl::OkStatus();
}

std::vector<float> Sparkline(const std::vector<float>& values, size_t points) {
  std::vector<float> line;
  if (points == 0 || values.empty()) return line;
  const size_t each = (values.size() + points - 1) / points;
  std::vector<float> group;
  for (size_t begin = values.size() % each; begin < values.size(); begin += each) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
    group.assign(first, first + static_cast<std::ptrdiff_t>(each));
    const auto middle = group.begin() + static_cast<std::ptrdiff_t>((each - 1) / 2);
    std::nth_element(group.begin(), middle, group.end());
    line.push_back(*middle);
  }
  return line;
}

}  // namespace tacho::server::view
