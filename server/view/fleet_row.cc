#include "server/view/fleet_row.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tacho::server::view {
namespace {

using conditions::JudgedConditionPtr;

// A rank is a band and a place in it, which a double holds to a sixteenth.
constexpr double kBand = 1e14;
constexpr double kTopOfBand = 9e13;
// A rank is made anew when its place has grown by so much.
constexpr double kGrowth = 1.1;

int BandOf(const FleetRow& row) {
  if (!row.conditions.empty()) return 3 + static_cast<int>(row.conditions[0]->finding.severity);
  if (row.job.state() == v1::JOB_STATE_RUNNING) return 2;
  return row.job.state() == v1::JOB_STATE_SILENT ? 1 : 0;
}

// Chip seconds of the worst condition, or the newest activity in ms.
double PlaceOf(const FleetRow& row, int64_t now_ns) {
  if (row.conditions.empty()) {
    return std::clamp(static_cast<double>(row.job.last_seen_unix_ns()) / 1e6, 0.0, kTopOfBand);
  }
  const int64_t since_ns = row.conditions[0]->since_ns;
  if (since_ns <= 0 || since_ns >= now_ns) return 0;  // It has just begun, or nobody knows.
  const double seconds = static_cast<double>(now_ns - since_ns) / 1e9;
  return std::min(std::max(1.0, static_cast<double>(row.chips)) * seconds, kTopOfBand);
}

size_t BytesOfMap(const std::map<std::string, std::string>& map) {
  size_t bytes = 0;
  for (const auto& [key, value] : map) bytes += key.size() + value.size() + 2 * sizeof(std::string);
  return bytes;
}

bool HaveSameGoodput(const goodput::BoardGoodput* a, const goodput::BoardGoodput* b) {
  if (a == b || a == nullptr || b == nullptr) return a == b;
  return goodput::GoodputRatio(a->total) == goodput::GoodputRatio(b->total) &&
         a->has_steps == b->has_steps && a->steps == b->steps && a->step_times == b->step_times;
}

bool HaveSameAttributes(const FleetRow& a, const FleetRow& b) {
  if (a.outline == b.outline) return a.outline != nullptr;
  if (a.outline == nullptr || b.outline == nullptr) return false;
  return std::tie(a.outline->attributes, a.outline->merged_attributes, a.outline->hosts) ==
         std::tie(b.outline->attributes, b.outline->merged_attributes, b.outline->hosts);
}

}  // namespace

size_t BytesOf(const storage::JobOutline& outline) {
  size_t bytes = BytesOfMap(outline.attributes) + BytesOfMap(outline.merged_attributes);
  for (const std::string& host : outline.hosts) bytes += host.size() + sizeof(std::string);
  return bytes;
}

std::vector<JudgedConditionPtr> TrueOnes(const conditions::JobConditions& all) {
  std::vector<JudgedConditionPtr> found;
  for (const JudgedConditionPtr& one : all) {
    if (one->status == conditions::ConditionStatus::kTrue) found.push_back(one);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    // A slow host makes the whole job slow: who looks wants to know the host.
    const bool a_names_nobody = a->finding.culprits.empty();
    const bool b_names_nobody = b->finding.culprits.empty();
    return std::tie(b->finding.severity, a_names_nobody, a->since_ns, a->name) <
           std::tie(a->finding.severity, b_names_nobody, b->since_ns, b->name);
  });
  return found;
}

double RankOf(const FleetRow& row, int64_t now_ns) {
  return BandOf(row) * kBand + PlaceOf(row, now_ns);
}

bool RankIsOld(const FleetRow& row, int64_t now_ns) {
  if (row.conditions.empty()) return false;
  const double place = row.rank - BandOf(row) * kBand;
  return PlaceOf(row, now_ns) > place * kGrowth;
}

bool ComesBefore(const FleetRow& a, const FleetRow& b) {
  if (a.rank != b.rank) return a.rank > b.rank;
  return a.job.name() < b.job.name();
}

bool ShowsTheSame(const FleetRow& a, const FleetRow& b) {
  return a.attempt == b.attempt && a.chips == b.chips && a.conditions == b.conditions &&
         HaveSameGoodput(a.goodput.get(), b.goodput.get()) && HaveSameAttributes(a, b) &&
         a.job.SerializeAsString() == b.job.SerializeAsString();
}

}  // namespace tacho::server::view
