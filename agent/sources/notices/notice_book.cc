#include "agent/sources/notices/notice_book.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

// The checkpoint is a list of texts, each "<bytes>:<text>": how many notices, then the name of each
// and what it says, then the events that wait, encoded.
void Append(absl::string_view text, std::string* out) {
  absl::StrAppend(out, text.size(), ":", text);
}

std::optional<absl::string_view> Take(absl::string_view* rest) {
  const size_t colon = rest->find(':');
  size_t bytes = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(rest->substr(0, colon), &bytes) ||
      bytes > rest->size() - colon - 1) {
    return std::nullopt;
  }
  const absl::string_view text = rest->substr(colon + 1, bytes);
  rest->remove_prefix(colon + 1 + bytes);
  return text;
}

}  // namespace

NoticeBook::NoticeBook(std::string key, const RowSink& sink) : key_(std::move(key)) {
  if (Decode(sink.ReadCheckpoint(key_))) return;
  says_.clear();
  waiting_.clear();
}

bool NoticeBook::Update(const std::string& notice, const std::string& says) {
  if (Says(notice) == says) return false;
  if (says.empty()) {
    says_.erase(notice);
  } else {
    says_[notice] = says;
  }
  stored_ = false;
  return true;
}

std::string NoticeBook::Says(const std::string& notice) const {
  const auto found = says_.find(notice);
  return found == says_.end() ? "" : found->second;
}

void NoticeBook::Add(v1::Event event) {
  waiting_.push_back(std::move(event));
  if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
}

absl::Status NoticeBook::Flush(RowSink* sink) {
  while (!waiting_.empty()) {
    v1::Event event = std::move(waiting_.front());
    waiting_.pop_front();
    if (auto s = sink->AppendEvent(event, {key_, Encode()}); !s.ok()) {
      waiting_.push_front(std::move(event));
      return s;
    }
    stored_ = true;
  }
  if (stored_) return absl::OkStatus();
  absl::Status status = sink->WriteCheckpoint({key_, Encode()});
  stored_ = status.ok();
  return status;
}

std::string NoticeBook::Encode() const {
  if (says_.empty() && waiting_.empty()) return "";
  std::string text;
  Append(absl::StrCat(says_.size()), &text);
  for (const auto& [notice, says] : says_) {
    Append(notice, &text);
    Append(says, &text);
  }
  for (const v1::Event& event : waiting_) Append(event.SerializeAsString(), &text);
  return text;
}

bool NoticeBook::Decode(absl::string_view text) {
  if (text.empty()) return true;
  const auto count = Take(&text);
  size_t notices = 0;
  if (!count || !absl::SimpleAtoi(*count, &notices)) return false;
  for (size_t i = 0; i < notices; ++i) {
    const auto notice = Take(&text);
    const auto says = notice ? Take(&text) : std::nullopt;
    if (!says) return false;
    says_[std::string(*notice)] = std::string(*says);
  }
  while (!text.empty()) {
    const auto encoded = Take(&text);
    v1::Event event;
    if (!encoded || !event.ParseFromString(std::string(*encoded))) return false;
    waiting_.push_back(std::move(event));
  }
  return true;
}

}  // namespace tacho::agent
