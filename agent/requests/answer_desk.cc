#include "agent/requests/answer_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/requests/python_stacks.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

const char* KindOf(const v1::AgentRequest& request) {
  switch (request.kind_case()) {
    case v1::AgentRequest::kStacks:
      return "stacks";
    case v1::AgentRequest::kProfile:
      return "profile";
    case v1::AgentRequest::KIND_NOT_SET:
      break;
  }
  return "";
}

v1::AgentFindings Refusal(std::string why) {
  v1::AgentFindings findings;
  findings.set_refusal(std::move(why));
  return findings;
}

}  // namespace

bool Shorten(size_t max_bytes, v1::AgentFindings* findings) {
  if (findings->ByteSizeLong() <= max_bytes) return true;
  for (v1::TaskStacks& stacks : *findings->mutable_stacks()) stacks.clear_threads();
  for (int frames = kMaxFrames / 2; frames >= 1; frames /= 2) {
    if (findings->ByteSizeLong() <= max_bytes) return false;
    for (v1::TaskStacks& stacks : *findings->mutable_stacks()) {
      if (stacks.main_size() <= frames) continue;
      stacks.mutable_main()->DeleteSubrange(frames, stacks.main_size() - frames);
    }
  }
  while (findings->ByteSizeLong() > max_bytes && findings->stacks_size() > 0) {
    findings->mutable_stacks()->RemoveLast();
  }
  if (findings->ByteSizeLong() > max_bytes) *findings = Refusal("its findings are too long");
  return false;
}

AnswerDesk::AnswerDesk(std::map<std::string, Answer> answers, log::Log log)
    : answers_(std::move(answers)), log_(std::move(log)) {}

AnswerDesk::~AnswerDesk() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    busy_ = true;  // Nothing begins any more.
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

std::vector<std::string> AnswerDesk::Kinds() const {
  std::vector<std::string> kinds;
  for (const auto& [kind, answer] : answers_) kinds.push_back(kind);
  return kinds;
}

void AnswerDesk::Take(const v1::AgentRequest& request) {
  const std::string kind = KindOf(request);
  std::thread finished;
  {
    absl::MutexLock lock(&mutex_);
    if (!answers_.contains(kind)) {
      Queue(request.id(), Refusal("the agent does not answer such requests"), kMaxReport);
    } else if (busy_) {
      Queue(request.id(), Refusal("the agent works on another request: try again"), kMaxReport);
    } else {
      busy_ = true;
      finished = std::move(thread_);  // It has ended, or is about to.
      if (finished.joinable()) finished.join();
      log_.Info("the collector asks for something", {{"kind", kind}, {"job", request.job()}});
      thread_ = std::thread([this, request, stream = stream_] { Work(request, stream); });
      return;
    }
  }
  TellListener();
}

void AnswerDesk::Work(const v1::AgentRequest& request, uint64_t stream) {
  const absl::Duration length =
      std::min(absl::Milliseconds(request.deadline_ms()), kLongestRequest);
  v1::AgentFindings findings = answers_.at(KindOf(request))(request, MonotonicNow() + length);
  {
    absl::MutexLock lock(&mutex_);
    if (stream == stream_) {
      Queue(request.id(), std::move(findings),
            std::min<size_t>(request.max_report_bytes(), kMaxReport));
    }
    // From now on another thread may join this one, with the lock held: it is not taken again.
    busy_ = false;
  }
  TellListener();
}

void AnswerDesk::Queue(uint64_t id, v1::AgentFindings findings, size_t max_bytes) {
  Shorten(max_bytes, &findings);
  const std::string data = findings.SerializeAsString();
  size_t sent = 0;
  for (uint32_t part = 0; part == 0 || sent < data.size(); ++part) {
    v1::AgentReport report;
    report.set_id(id);
    report.set_part(part);
    report.set_data(data.substr(sent, kMaxReportPart));
    sent += report.data().size();
    report.set_last(sent == data.size());
    reports_.push_back(std::move(report));
  }
}

std::optional<v1::AgentReport> AnswerDesk::NextReport() {
  absl::MutexLock lock(&mutex_);
  if (reports_.empty()) return std::nullopt;
  v1::AgentReport report = std::move(reports_.front());
  reports_.pop_front();
  return report;
}

void AnswerDesk::StreamEnded() {
  absl::MutexLock lock(&mutex_);
  ++stream_;
  reports_.clear();
}

void AnswerDesk::SetListener(std::function<void()> ready) {
  absl::MutexLock lock(&listener_mutex_);
  ready_ = std::move(ready);
}

void AnswerDesk::TellListener() {
  absl::MutexLock lock(&listener_mutex_);
  if (ready_) ready_();
}

}  // namespace tacho::agent
