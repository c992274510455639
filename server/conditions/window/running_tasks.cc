#include "server/conditions/window/running_tasks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::conditions {

template <typename Entry, typename Keep>
RunningTasks::Parted<Entry> RunningTasks::Part(const Keep& keep, std::vector<Entry>* list) {
  Parted<Entry> parted;
  parted.all = std::exchange(*list, {});
  for (size_t i = 0; i < parted.all.size(); ++i) {
    if (!keep(parted.all[i])) continue;
    parted.kept.push_back(i);
    list->push_back(std::move(parted.all[i]));
  }
  return parted;
}

template <typename Entry>
void RunningTasks::Join(Parted<Entry>* parted, std::vector<Entry>* list) {
  TACHO_CHECK(parted->kept.size() == list->size());
  for (size_t i = 0; i < list->size(); ++i) parted->all[parted->kept[i]] = std::move((*list)[i]);
  *list = std::move(parted->all);
}

RunningTasks::RunningTasks(JobWindow* window) : window_(window) {
  const auto lives = [](const TaskWindow& task) { return task.lives(); };
  if (std::all_of(window->tasks.begin(), window->tasks.end(), lives)) return;
  parted_ = true;
  tasks_ = Part(lives, &window->tasks);
  std::set<std::string> hosts;
  for (const TaskWindow& task : window->tasks) hosts.insert(task.host);
  hosts_ = Part([&](const HostWindow& host) { return hosts.contains(host.host); }, &window->hosts);
  chips_ = Part([&](const ChipWindow& chip) { return hosts.contains(chip.host); }, &window->chips);
}

RunningTasks::~RunningTasks() {
  if (!parted_) return;
  Join(&tasks_, &window_->tasks);
  Join(&hosts_, &window_->hosts);
  Join(&chips_, &window_->chips);
}

}  // namespace tacho::server::conditions
