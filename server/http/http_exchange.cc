// A handler's thread appends bytes here and rings; the front's thread takes them and says what it
// has sent. Callbacks are called without the lock, because they may write at once.
#include "server/http/http_exchange.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/errors/error_table.h"
#include "server/http/content.h"

namespace tacho::server::http {
namespace {

// Bodies smaller than this are not worth packing.
constexpr size_t kMinGzipBytes = 1024;

// Every answer has these besides those of its handler.
void Complete(Audience audience, HttpResponse* response) {
  if (!response->HasHeader("Vary")) {
    response->headers.emplace_back("Vary", "Accept, Accept-Encoding");
  }
  AddBrowserHeaders(audience, response);
}

void Pack(HttpResponse* response) {
  if (response->body.size() < kMinGzipBytes || response->HasHeader("Content-Encoding")) return;
  auto packed = Gzip(response->body);
  if (!packed.has_value()) return;
  response->body = *std::move(packed);
  response->headers.emplace_back("Content-Encoding", "gzip");
}

class ExchangeResponder final : public Responder {
 public:
  explicit ExchangeResponder(std::shared_ptr<HttpExchange> exchange)
      : exchange_(std::move(exchange)) {}
  ~ExchangeResponder() override { exchange_->Abandon(); }

  void Answer(HttpResponse response) override { exchange_->Answer(std::move(response)); }
  void Begin(HttpResponse head) override { exchange_->Begin(std::move(head)); }
  void Write(std::string bytes) override { exchange_->Write(bytes); }
  void Finish() override { exchange_->Finish(); }
  size_t unsent() const override { return exchange_->unsent(); }
  void OnRoom(std::function<void()> room) override { exchange_->OnRoom(std::move(room)); }
  void OnGone(std::function<void()> gone) override { exchange_->OnGone(std::move(gone)); }

 private:
  const std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace

AnswerBell::AnswerBell() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

AnswerBell::~AnswerBell() {
  if (fd_ >= 0) close(fd_);
}

void AnswerBell::Ring(uint64_t connection) {
  {
    absl::MutexLock lock(&mutex_);
    rung_.push_back(connection);
    if (rung_.size() > 1) return;  // The front knows, and has not come yet.
  }
  const uint64_t one = 1;
  while (write(fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

std::vector<uint64_t> AnswerBell::Take() {
  // Read before the list is taken, so that a later ring wakes again.
  uint64_t rings = 0;
  while (read(fd_, &rings, sizeof(rings)) < 0 && errno == EINTR) {
  }
  std::vector<uint64_t> rung;
  absl::MutexLock lock(&mutex_);
  rung.swap(rung_);
  return rung;
}

HttpExchange::HttpExchange(HttpRequest asked, const Route* to, Form form, uint64_t connection,
                           std::shared_ptr<AnswerBell> bell)
    : request(std::move(asked)),
      route(to),
      form_(std::move(form)),
      connection_(connection),
      bell_(std::move(bell)) {}

HttpExchange::Piece HttpExchange::Take() {
  absl::MutexLock lock(&mutex_);
  return {std::exchange(pending_, std::string()), begun_, ended_, cut_, status_};
}

bool HttpExchange::IsOpen() const {
  absl::MutexLock lock(&mutex_);
  return !closed_;
}

bool HttpExchange::HasRoom() const { return closed_ || unsent_ <= Responder::kHighWater / 2; }

void HttpExchange::OnSent(size_t bytes) {
  std::function<void()> room;
  {
    absl::MutexLock lock(&mutex_);
    unsent_ -= std::min(bytes, unsent_);
    if (HasRoom()) room = std::exchange(room_, nullptr);
  }
  if (room != nullptr) room();
}

void HttpExchange::Close() {
  std::function<void()> room, gone;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
    pending_ = std::string();
    unsent_ = 0;
    room = std::exchange(room_, nullptr);
    gone = std::exchange(gone_, nullptr);
  }
  if (gone != nullptr) gone();
  if (room != nullptr) room();
}

void HttpExchange::Append(absl::string_view bytes) {
  absl::StrAppend(&pending_, bytes);
  unsent_ += bytes.size();
}

void HttpExchange::Answer(HttpResponse response) {
  Complete(form_.audience, &response);
  if (form_.packs) Pack(&response);
  std::string bytes = WriteResponse(response, form_.now(), !form_.head_only, form_.keep_open);
  std::function<void()> gone;  // Goes without the lock, as it may hold the responder.
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    TACHO_CHECK(!begun_ && !ended_);
    ended_ = true;
    status_ = response.status;
    unsent_ = bytes.size();
    pending_ = std::move(bytes);
    gone = std::exchange(gone_, nullptr);
  }
  bell_->Ring(connection_);
}

void HttpExchange::Begin(HttpResponse head) {
  Complete(form_.audience, &head);
  const std::string bytes = WriteStreamHead(head, form_.now(), form_.chunked, form_.keep_open);
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    TACHO_CHECK(!begun_ && !ended_);
    begun_ = true;
    status_ = head.status;
    Append(bytes);
  }
  if (head.body.empty()) return bell_->Ring(connection_);
  Write(head.body);
}

void HttpExchange::Write(absl::string_view bytes) {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    TACHO_CHECK(begun_ && !ended_);
    if (!form_.head_only) Append(form_.chunked ? WriteChunk(bytes) : std::string(bytes));
  }
  bell_->Ring(connection_);
}

void HttpExchange::Finish() {
  std::function<void()> gone;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    TACHO_CHECK(begun_ && !ended_);
    ended_ = true;
    if (form_.chunked && !form_.head_only) Append(kLastChunk);
    gone = std::exchange(gone_, nullptr);
  }
  bell_->Ring(connection_);
}

size_t HttpExchange::unsent() const {
  absl::MutexLock lock(&mutex_);
  return unsent_;
}

void HttpExchange::OnRoom(std::function<void()> room) {
  {
    absl::MutexLock lock(&mutex_);
    if (!HasRoom()) {
      room_ = std::move(room);
      return;
    }
  }
  room();
}

void HttpExchange::OnGone(std::function<void()> gone) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    if (!closed_) {
      gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void HttpExchange::Abandon() {
  std::function<void()> gone;
  bool begun = false;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_ || ended_) return;
    begun = begun_;
    ended_ = cut_ = begun_;
    gone = std::exchange(gone_, nullptr);
  }
  if (begun) return bell_->Ring(connection_);
  Answer(ErrorResponse(errors::ErrorOf(errors::Failure::kInternal, "the page gave no answer")));
}

ResponderPtr MakeResponder(std::shared_ptr<HttpExchange> exchange) {
  return std::make_shared<ExchangeResponder>(std::move(exchange));
}

}  // namespace tacho::server::http
