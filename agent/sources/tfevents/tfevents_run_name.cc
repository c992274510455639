#include "agent/sources/tfevents/tfevents_run_name.h"

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ring/ring_text.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

constexpr size_t kMaxJobBytes = 256;  // tacho.v1.Source

int GroupNumber(const RE2& pattern, const std::string& name) {
  const auto found = pattern.NamedCapturingGroups().find(name);
  return found == pattern.NamedCapturingGroups().end() ? 0 : found->second;
}

}  // namespace

absl::StatusOr<TfeventsRunNamer> TfeventsRunNamer::Create(
    const config::v1::Agent::TfeventsDirectory& config) {
  TfeventsRunNamer namer;
  RE2::Options options;
  options.set_log_errors(false);
  namer.pattern_ = std::make_unique<RE2>(config.run_pattern(), options);
  if (!namer.pattern_->ok()) {
    return absl::InvalidArgumentError(absl::StrCat("run_pattern: ", namer.pattern_->error()));
  }
  namer.task_group_ = GroupNumber(*namer.pattern_, "task");
  namer.attempt_group_ = GroupNumber(*namer.pattern_, "attempt");
  namer.task_ = config.task();
  TACHO_RETURN_IF_ERROR(namer.ParseTemplate(config.job()));
  return namer;
}

absl::Status TfeventsRunNamer::ParseTemplate(absl::string_view text) {
  while (!text.empty()) {
    const size_t open = text.find('{');
    Piece piece;
    piece.text = std::string(text.substr(0, open));
    if (piece.text.find('}') != std::string::npos) {
      return absl::InvalidArgumentError("job: a '}' without its '{'");
    }
    if (!piece.text.empty()) job_.push_back(piece);
    if (open == absl::string_view::npos) return absl::OkStatus();
    const size_t close = text.find('}', open);
    if (close == absl::string_view::npos) {
      return absl::InvalidArgumentError("job: a '{' without its '}'");
    }
    const std::string name(text.substr(open + 1, close - open - 1));
    piece.text.clear();
    piece.group = GroupNumber(*pattern_, name);
    if (piece.group == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("job: run_pattern has no group named '", name, "'"));
    }
    job_.push_back(piece);
    text.remove_prefix(close + 1);
  }
  return absl::OkStatus();
}

absl::StatusOr<TfeventsRunName> TfeventsRunNamer::Name(absl::string_view directory) const {
  const re2::StringPiece text(directory.data(), directory.size());
  std::vector<re2::StringPiece> groups(static_cast<size_t>(pattern_->NumberOfCapturingGroups()) +
                                       1);
  if (!pattern_->Match(text, 0, text.size(), RE2::ANCHOR_BOTH, groups.data(),
                       static_cast<int>(groups.size()))) {
    return absl::NotFoundError("run_pattern does not match");
  }
  const auto group = [&groups](int number) {
    const re2::StringPiece& piece = groups[static_cast<size_t>(number)];
    return absl::string_view(piece.data(), piece.size());
  };
  TfeventsRunName name;
  name.task = task_;
  for (const Piece& piece : job_) {
    absl::StrAppend(&name.job,
                    piece.group == 0 ? absl::string_view(piece.text) : group(piece.group));
  }
  if (name.job.empty() || name.job.size() > kMaxJobBytes ||
      !client::IsCleanText(std::string_view(name.job))) {
    return absl::InvalidArgumentError("the job's name is empty, too long or no clean UTF-8");
  }
  if (task_group_ != 0 && !group(task_group_).empty() &&
      !absl::SimpleAtoi(group(task_group_), &name.task)) {
    return absl::InvalidArgumentError("what group task matched is no task number");
  }
  if (attempt_group_ != 0 && !group(attempt_group_).empty()) {
    uint32_t attempt = 0;
    if (!absl::SimpleAtoi(group(attempt_group_), &attempt)) {
      return absl::InvalidArgumentError("what group attempt matched is no attempt number");
    }
    name.attempt = attempt;
  }
  return name;
}

}  // namespace tacho::agent
