#include "server/view/answered_jobs.h"

#include <algorithm>
#include <utility>

namespace tacho::server::view {

std::shared_ptr<const JobNames> AnsweredJobs::Find(const std::string& question, uint64_t revision) {
  absl::MutexLock lock(&mutex_);
  const auto found = questions_.find(question);
  if (found == questions_.end()) return nullptr;
  found->second.used = ++uses_;
  for (const Answers& answers : found->second.answers) {
    if (answers.first <= revision && revision <= answers.last) return answers.names;
  }
  return nullptr;
}

void AnsweredJobs::Remember(const std::string& question, uint64_t revision, JobNames names) {
  absl::MutexLock lock(&mutex_);
  Question& entry = questions_[question];
  entry.used = ++uses_;
  if (entry.answers.empty()) bytes_ += question.size();
  if (!entry.answers.empty()) {
    Answers& newest = entry.answers.back();
    if (revision <= newest.last) return;  // Somebody else's answer was quicker.
    if (*newest.names == names) {
      newest.last = revision;
      return;
    }
  }
  size_t bytes = sizeof(Answers);
  for (const std::string& name : names) bytes += sizeof(std::string) + name.capacity();
  entry.answers.push_back(
      {revision, revision, std::make_shared<const JobNames>(std::move(names)), bytes});
  bytes_ += bytes;
  if (entry.answers.size() > kMaxAnswers) DropOldest(&entry);
  MakeRoom();
}

size_t AnsweredJobs::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

void AnsweredJobs::DropOldest(Question* question) {
  bytes_ -= question->answers.front().bytes;
  question->answers.pop_front();
}

void AnsweredJobs::MakeRoom() {
  while (bytes_ > max_bytes_ && !questions_.empty()) {
    const auto oldest = std::min_element(
        questions_.begin(), questions_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    DropOldest(&oldest->second);
    if (!oldest->second.answers.empty()) continue;
    bytes_ -= oldest->first.size();
    questions_.erase(oldest);
  }
}

}  // namespace tacho::server::view
