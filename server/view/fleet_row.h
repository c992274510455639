// One job of the fleet, as View.Fleet shows it, and the order of jobs by how sick they are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/conditions/condition_board.h"
#include "server/goodput/goodput_board.h"
#include "storage/model/job.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::view {

// Immutable once it is on the board.
struct FleetRow {
  v1::Job job;
  uint32_t attempt = 0;
  // With hosts. Null: too large to be kept (kMaxKeptOutline); ask the store.
  std::shared_ptr<const storage::JobOutline> outline;
  std::shared_ptr<const goodput::BoardGoodput> goodput;    // Null: none is known.
  std::vector<conditions::JudgedConditionPtr> conditions;  // Those that are true, the worst first.
  uint32_t chips = 0;
  double rank = 0;        // As of the row's last change.
  uint64_t revision = 0;  // The board's, of the row's last change.
};
using FleetRowPtr = std::shared_ptr<const FleetRow>;

// An outline of more bytes, mostly attributes and names of hosts, is not kept in memory: there may
// be ten thousand.
inline constexpr size_t kMaxKeptOutline = 8192;
size_t BytesOf(const storage::JobOutline& outline);

// Those of `all` that are true, the worst first: by severity, then those that name a
// culprit, then the oldest, then by name.
std::vector<conditions::JudgedConditionPtr> TrueOnes(const conditions::JobConditions& all);

// FleetJob.rank. A job whose chips are not known counts as if it had one.
double RankOf(const FleetRow& row, int64_t now_ns);
// Whether `row` began to be sick so much longer ago than its rank says that others may pass it.
bool RankIsOld(const FleetRow& row, int64_t now_ns);
// By rank, the highest first; then by name.
bool ComesBefore(const FleetRow& a, const FleetRow& b);

// Whether a reader would see a difference. Ranks and revisions do not count.
bool ShowsTheSame(const FleetRow& a, const FleetRow& b);

}  // namespace tacho::server::view
