#include "server/conditions/profile_schedule.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tacho::server::conditions {
namespace {

constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

int64_t NewestStep(const JobWindow& window) {
  int64_t newest = kNoStep;
  for (const TaskWindow& task : window.tasks) {
    if (task.last_step.has_value()) newest = std::max(newest, *task.last_step);
  }
  return newest;
}

// The culprits that live, then the lowest tasks, to compare them with.
std::vector<uint32_t> ChooseTasks(const JobWindow& window, const std::vector<uint32_t>& culprits,
                                  size_t most) {
  std::vector<uint32_t> living;
  for (const TaskWindow& task : window.tasks) {
    if (task.lives() && task.task.has_value()) living.push_back(*task.task);
  }
  std::vector<uint32_t> chosen;
  const auto add = [&](uint32_t task) {
    if (chosen.size() >= most) return;
    if (std::find(chosen.begin(), chosen.end(), task) == chosen.end()) chosen.push_back(task);
  };
  for (const uint32_t task : culprits) {
    if (std::find(living.begin(), living.end(), task) != living.end()) add(task);
  }
  for (const uint32_t task : living) add(task);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

void ProfileSchedule::Raised(absl::string_view condition, const Finding& finding,
                             const ProfilerRules& rules, absl::Time now) {
  if (!rules.on.contains(std::string(condition)) || now - last_taken_ < rules.min_interval) return;
  if (wish_.has_value() && now < wish_->until) return;  // The first one stays.
  wish_ = {.condition = std::string(condition), .culprits = {}, .until = now + kPatience};
  for (const Culprit& culprit : finding.culprits) {
    if (culprit.task.has_value()) wish_->culprits.push_back(*culprit.task);
  }
}

std::optional<std::string> ProfileSchedule::CauseOf(const ProfilerRules& rules, int64_t step,
                                                    absl::Time now) {
  if (wish_.has_value() && now >= wish_->until) wish_.reset();
  if (wish_.has_value()) return wish_->condition;
  if (now - last_taken_ < rules.min_interval) return std::nullopt;
  if (rules.every_steps > 0 && step != kNoStep && step - since_step_ >= rules.every_steps) {
    return absl::StrCat("every ", rules.every_steps, " steps");
  }
  if (rules.every > absl::ZeroDuration() && now - since_ >= rules.every) {
    return absl::StrCat("every ", absl::FormatDuration(rules.every));
  }
  return std::nullopt;
}

std::optional<ProfileOrder> ProfileSchedule::Next(const JobWindow& window,
                                                  const ProfilerRules& rules, absl::Time now) {
  newest_step_ = NewestStep(window);
  // The clock was set back.
  last_taken_ = std::min(last_taken_, now);
  since_ = std::min(since_, now);
  if (attempt_ != window.attempt || newest_step_ < since_step_ || since_step_ == kNoStep) {
    attempt_ = window.attempt;
    since_ = now;
    since_step_ = newest_step_;
  }
  const bool lives = std::any_of(window.tasks.begin(), window.tasks.end(),
                                 [](const TaskWindow& task) { return task.lives(); });
  if (window.ended || !lives) return std::nullopt;
  const std::optional<std::string> cause = CauseOf(rules, newest_step_, now);
  if (!cause.has_value()) return std::nullopt;
  ProfileOrder order = {
      .job = window.job, .cause = *cause, .tasks = {}, .duration = rules.duration};
  if (rules.tasks > 0) {
    const std::vector<uint32_t> none;
    order.tasks = ChooseTasks(window, wish_.has_value() ? wish_->culprits : none, rules.tasks);
    if (order.tasks.empty()) return std::nullopt;  // Its rows name no tasks.
  }
  return order;
}

void ProfileSchedule::Taken(absl::Time now) {
  wish_.reset();
  last_taken_ = since_ = now;
  since_step_ = newest_step_;
}

}  // namespace tacho::server::conditions
