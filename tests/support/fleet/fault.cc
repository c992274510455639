#include "tests/support/fleet/fault.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::fleet {
namespace {

struct Kind {
  absl::string_view name;
  FaultKind kind;
  enum Whom : uint8_t { kJob, kTaskOrHost, kTask, kHost } whom;
};
constexpr std::array<Kind, 13> kKinds = {{
    {"slow", FaultKind::kSlow, Kind::kTaskOrHost},
    {"input", FaultKind::kInput, Kind::kJob},
    {"hang", FaultKind::kHang, Kind::kTaskOrHost},
    {"crash", FaultKind::kCrash, Kind::kTaskOrHost},
    {"nan", FaultKind::kNan, Kind::kTask},
    {"spike", FaultKind::kSpike, Kind::kJob},
    {"disagree", FaultKind::kDisagree, Kind::kTask},
    {"leak", FaultKind::kLeak, Kind::kHost},
    {"ecc", FaultKind::kEcc, Kind::kHost},
    {"throttle", FaultKind::kThrottle, Kind::kHost},
    {"restart", FaultKind::kRestart, Kind::kJob},
    {"end", FaultKind::kEnd, Kind::kJob},
    {"recover", FaultKind::kRecover, Kind::kJob},
}};

bool ParsePositive(absl::string_view value, double* out) {
  return absl::SimpleAtod(value, out) && *out > 0;
}

bool Set(absl::string_view key, absl::string_view value, Fault* fault) {
  if (key == "job") fault->job = std::string(value);
  if (key == "host") fault->host = std::string(value);
  if (key == "job" || key == "host") return !value.empty();
  if (key == "task") return absl::SimpleAtoi(value, &fault->task.emplace());
  if (key == "chip") return absl::SimpleAtoi(value, &fault->chip.emplace());
  if (key == "factor") return ParsePositive(value, &fault->factor.emplace());
  if (key == "bytes") return ParsePositive(value, &fault->bytes_per_second);
  if (key == "step") return absl::SimpleAtoi(value, &fault->step.emplace());
  if (key == "to") return absl::SimpleAtoi(value, &fault->to_step.emplace());
  if (key == "down") return ParsePositive(value, &fault->down_seconds);
  if (key == "status") {
    fault->status = std::string(value);
    return value == "succeeded" || value == "failed";
  }
  return false;
}

absl::Status CheckWhom(Kind::Whom whom, const Fault& fault) {
  const bool task = fault.task.has_value(), host = !fault.host.empty();
  if (whom == Kind::kTaskOrHost && task == host) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", fault.text, "': expected either host=… or task=…"));
  }
  if (whom == Kind::kTask && !task) {
    return absl::InvalidArgumentError(absl::StrCat("'", fault.text, "': expected task=…"));
  }
  if (whom == Kind::kHost && !host) {
    return absl::InvalidArgumentError(absl::StrCat("'", fault.text, "': expected host=…"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Fault> ParseFault(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
  const Kind* found = nullptr;
  for (const Kind& kind : kKinds) {
    if (!words.empty() && kind.name == words.front()) found = &kind;
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", line,
                     "': no fault; expected slow, input, hang, crash, nan, spike, "
                     "disagree, leak, ecc, throttle, restart, end or recover"));
  }
  Fault fault;
  fault.kind = found->kind;
  fault.text = std::string(line);
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (!Set(pair.first, pair.second, &fault)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", line, "': '", words[i], "' is no setting of a fault"));
    }
  }
  if (fault.job.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", line, "': expected job=…"));
  }
  absl::Status status = CheckWhom(found->whom, fault);
  if (!status.ok()) return status;
  return fault;
}

}  // namespace tacho::fleet
