// A round reads as much as fits into one request a connection, by the series, and waits for all of
// them before the cursor moves. So the cursor is one number, and a series never overtakes itself.
#include "server/forward/receiver.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/background_thread.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "server/metrics/metric_families.h"
#include "server/promread/read_time.h"

namespace tacho::server::forward {
namespace {

// Of an answer's text, in the log.
constexpr size_t kMaxAnswerText = 300;
// A secret of more bytes is none.
constexpr size_t kMaxSecretBytes = 64 << 10;
// How often the time of a receiver that lacks nothing is written.
constexpr int64_t kCompleteEveryNs = 10'000'000'000;

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": the file cannot be read"));
  std::string text(kMaxSecretBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  absl::StripAsciiWhitespace(&text);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return !absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (text.empty() || !plain) {
    return absl::UnavailableError(absl::StrCat(path, ": the file has no secret of one line"));
  }
  return text;
}

absl::Status CheckConfig(const config::v1::Forward& config, const std::string& key) {
  const auto wrong = [&key](absl::string_view name, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(key, ".", name, ": ", what));
  };
  if (config.name().empty()) return wrong("name", "give the receiver a name");
  if (!absl::StartsWith(config.url(), "http://") && !absl::StartsWith(config.url(), "https://")) {
    return wrong("url", "write http://HOST:PORT/PATH or https://HOST:PORT/PATH");
  }
  if (!config.bearer_token_file().empty() && !config.username().empty()) {
    return wrong("username", "use it or bearer_token_file, not both");
  }
  if (config.username().empty() != config.password_file().empty()) {
    return wrong("password_file", "basic authentication needs username and password_file");
  }
  for (const auto& [name, value] : config.headers()) {
    for (const char* own : {"Content-Encoding", "Content-Type", "User-Agent", "Authorization",
                            "X-Prometheus-Remote-Write-Version"}) {
      if (absl::EqualsIgnoreCase(name, own)) {
        return wrong("headers", absl::StrCat(name, " is set by the collector; remove it"));
      }
    }
    const auto bad = [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); };
    if (name.empty() || name.find_first_of(": ") != std::string::npos ||
        std::any_of(name.begin(), name.end(), bad) ||
        std::any_of(value.begin(), value.end(), bad)) {
      return wrong("headers", absl::StrCat("\"", name, "\" or its value cannot be a header's"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Receiver>> Receiver::Create(ReceiverOptions options) {
  TACHO_RETURN_IF_ERROR(CheckConfig(options.config, options.key));
  TACHO_ASSIGN_OR_RETURN(auto naming, SeriesNaming::Create(options.config, options.key));
  auto log = storage::ForwardLog::Open(options.store, options.config.name(),
                                       options.config.start_at() == "oldest"
                                           ? storage::ForwardLog::Start::kOldest
                                           : storage::ForwardLog::Start::kNow);
  if (!log.ok()) {
    return absl::Status(log.status().code(),
                        absl::StrCat(options.key, ": ", log.status().message()));
  }
  return std::unique_ptr<Receiver>(
      new Receiver(std::move(options), std::move(naming), *std::move(log)));
}

Receiver::Receiver(ReceiverOptions options, std::shared_ptr<const SeriesNaming> naming,
                   std::unique_ptr<storage::ForwardLog> log)
    : options_(std::move(options)),
      log_(std::move(log)),
      texts_(std::move(naming)),
      batches_(std::max<uint32_t>(1, options_.config.connections())),
      http_(options_.config.ca_file()),
      first_version_(options_.config.protocol() == "1.0"),
      open_version_(options_.config.protocol() == "auto"),
      complete_ns_(log_->cursor().complete_ns),
      sent_(metrics::NewCounter(options_.registry, "tacho_forward_samples_total",
                                {{"receiver", name()}})),
      refused_(metrics::NewCounter(options_.registry, "tacho_forward_samples_left_out_total",
                                   {{"receiver", name()}})),
      damaged_columns_(metrics::NewCounter(options_.registry, "tacho_forward_damaged_columns_total",
                                           {{"receiver", name()}})),
      bytes_(metrics::NewCounter(options_.registry, "tacho_forward_bytes_total",
                                 {{"receiver", name()}})),
      retries_(metrics::NewCounter(options_.registry, "tacho_forward_retries_total",
                                   {{"receiver", name()}})),
      requests_(metrics::CounterFamily(options_.registry, "tacho_forward_requests_total")) {}

void Receiver::Start() {
  thread_ = std::thread([this] {
    BecomeBackgroundThread("forward");
    Run();
  });
}

void Receiver::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Receiver::Pause(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  return !AwaitFor(&mutex_, absl::Condition(&stopping_), time);
}

void Receiver::Run() {
  while (Pause(Round())) {
  }
}

absl::Duration Receiver::Lag() const {
  const int64_t since = complete_ns_;
  if (since == 0) return absl::ZeroDuration();
  return std::max(options_.now() - absl::FromUnixNanos(since), absl::ZeroDuration());
}

bool Receiver::Wants(const storage::LayoutPtr& layout, size_t column) {
  return texts_.Of(layout)[column] != nullptr;
}

void Receiver::Take(const storage::LayoutPtr& layout, size_t column, std::span<const int64_t> times,
                    std::span<const double> values) {
  const SeriesTextPtr& text = texts_.Of(layout)[column];
  WriteBatch& batch =
      batches_[batches_.size() == 1
                   ? 0
                   : absl::Hash<std::string>()(text->labels_bytes) % batches_.size()];
  for (size_t i = 0; i < times.size(); ++i) {
    // In a row a stale marker says that the series has no value there, not that it has ended.
    if (!IsStaleMarker(values[i])) batch.Add(text, promread::MsOf(times[i]), values[i]);
  }
}

absl::Duration Receiver::Round() {
  const absl::Time began = options_.now();
  for (WriteBatch& batch : batches_) batch.Clear();
  const auto more = log_->Next(size_t{options_.config.max_samples()} * batches_.size(), this);
  if (!more.ok()) {
    options_.log.Limited(log::Level::kError, "stored samples cannot be read for a receiver",
                         {{"receiver", name()}, {"why", more.status().message()}});
    return absl::Seconds(5);
  }
  damaged_columns_.Increment(static_cast<double>(log_->damaged_columns() - damaged_));
  damaged_ = log_->damaged_columns();
  if (*more) {
    if (complete_ns_ == 0) complete_ns_ = absl::ToUnixNanos(began);
    if (!SendAll()) return absl::ZeroDuration();
    // Something new may always have come meanwhile; what counts is what was there.
    if (log_->cursor().until == 0 && log_->cursor().position >= goal_) {
      complete_ns_ = std::max<int64_t>(complete_ns_, goal_ns_);
      goal_ = log_->end();
      goal_ns_ = absl::ToUnixNanos(options_.now());
    }
    CommitCursor();
    return absl::ZeroDuration();
  }
  complete_ns_ = 0;
  goal_ = 0;
  goal_ns_ = 0;
  if (absl::ToUnixNanos(began) - log_->cursor().complete_ns > kCompleteEveryNs) CommitCursor();
  return options_.poll;
}

void Receiver::CommitCursor() {
  const int64_t complete = complete_ns_;
  const absl::Status status =
      log_->Commit(complete == 0 ? absl::ToUnixNanos(options_.now()) : complete);
  if (!status.ok()) {
    options_.log.Limited(log::Level::kWarn, "how far a receiver is could not be written",
                         {{"receiver", name()}, {"why", status.message()}});
  }
}

bool Receiver::SendAll() {
  std::vector<std::thread> others;
  std::atomic<bool> all = true;
  for (size_t i = 1; i < batches_.size(); ++i) {
    batches_[i].Finish();
    if (batches_[i].samples() == 0) continue;
    others.emplace_back([this, i, &all] {
      if (!SendUntilTaken(batches_[i])) all = false;
    });
  }
  batches_[0].Finish();
  if (batches_[0].samples() > 0 && !SendUntilTaken(batches_[0])) all = false;
  for (std::thread& other : others) other.join();
  return all;
}

absl::StatusOr<std::vector<std::string>> Receiver::Headers(WriteVersion version) const {
  const config::v1::Forward& config = options_.config;
  std::vector<std::string> headers =
      HeadersOf(version, absl::StrCat("tacho-collector/", options_.version));
  for (const auto& [name, value] : config.headers()) {
    headers.push_back(absl::StrCat(name, ": ", value));
  }
  if (!config.bearer_token_file().empty()) {
    TACHO_ASSIGN_OR_RETURN(const auto token, ReadSecret(config.bearer_token_file()));
    headers.push_back(absl::StrCat("Authorization: Bearer ", token));
  } else if (!config.username().empty()) {
    TACHO_ASSIGN_OR_RETURN(const auto password, ReadSecret(config.password_file()));
    headers.push_back(
        absl::StrCat("Authorization: Basic ",
                     absl::Base64Escape(absl::StrCat(config.username(), ":", password))));
  }
  return headers;
}

bool Receiver::SendUntilTaken(const WriteBatch& batch) {
  absl::BitGen random;
  absl::Duration pause = options_.first_pause;
  const absl::Duration longest = absl::Nanoseconds(options_.config.max_backoff());
  WriteVersion packed_as = first_version_ ? WriteVersion::k1 : WriteVersion::k2;
  std::string body = PackSnappy(batch.Encode(packed_as));
  for (int tries = 1;; ++tries) {
    const WriteVersion version = first_version_ ? WriteVersion::k1 : WriteVersion::k2;
    if (version != packed_as) body = PackSnappy(batch.Encode(packed_as = version));
    storage::HttpReply reply;
    auto headers = Headers(version);
    if (headers.ok()) {
      storage::HttpCall call;
      call.method = "POST";
      call.url = options_.config.url();
      call.headers = *std::move(headers);
      if (tries > 1) call.headers.push_back(absl::StrCat("Retry-Attempt: ", tries - 1));
      call.body = body;
      call.patience = absl::Nanoseconds(options_.config.timeout());
      call.quick = true;
      reply = http_.Send(call);
      requests_.Add({{"receiver", name()}, {"code", absl::StrCat(reply.status)}}).Increment();
      bytes_.Increment(static_cast<double>(body.size()));
    } else {
      reply.error = std::string(headers.status().message());
    }
    const Verdict verdict = Judge({version, batch.samples(), open_version_}, reply, options_.now());
    if (version == WriteVersion::k2 && CountsWritten(reply)) open_version_ = false;
    sent_.Increment(static_cast<double>(verdict.written));
    switch (verdict.step) {
      case NextStep::kGoOn:
        return true;
      case NextStep::kLeaveOut:
        LeaveOut(batch, batch.samples() - verdict.written, reply);
        return true;
      case NextStep::kUseFirst:
        if (!first_version_.exchange(true)) {
          options_.log.Info("a receiver does not know remote write 2.0 and gets 1.0",
                            {{"receiver", name()}, {"code", absl::StrCat(reply.status)}});
        }
        continue;
      case NextStep::kTryLater:
        break;
    }
    retries_.Increment();
    options_.log.Limited(
        log::Level::kWarn, "a receiver takes nothing now; what it lacks comes later",
        {{"receiver", name()},
         {"code", absl::StrCat(reply.status)},
         {"why", reply.error.empty() ? reply.body.substr(0, kMaxAnswerText) : reply.error}});
    // Half of it by chance, so that collectors do not come back together.
    absl::Duration wait = pause * absl::Uniform(random, 0.5, 1.0);
    if (verdict.pause) wait = std::max(wait, *verdict.pause);
    if (!Pause(wait)) return false;
    pause = std::min(pause * 2, longest);
  }
}

void Receiver::LeaveOut(const WriteBatch& batch, size_t count, const storage::HttpReply& reply) {
  refused_.Increment(static_cast<double>(count));
  options_.log.Limited(log::Level::kError, "a receiver refuses samples for good; they are left out",
                       {{"receiver", name()},
                        {"code", absl::StrCat(reply.status)},
                        {"samples", absl::StrCat(count)},
                        {"example", batch.Example()},
                        {"why", reply.body.substr(0, kMaxAnswerText)}});
}

}  // namespace tacho::server::forward
