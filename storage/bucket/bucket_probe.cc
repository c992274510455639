// Each check writes keys of its own, so that none depends on what another left.
#include "storage/bucket/bucket_probe.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status_macros.h"
#include "storage/bucket/http_bucket.h"

namespace tacho::storage {
namespace {

using Result = ProbeFinding::Result;
using Written = absl::StatusOr<std::string>;

struct Outcome {
  Result result = Result::kUnknown;
  std::string detail;
};

Outcome Pass(std::string detail) { return {Result::kPass, std::move(detail)}; }
Outcome Fail(std::string detail) { return {Result::kFail, std::move(detail)}; }
// An answer that is no answer decides nothing.
Outcome Failed(const absl::Status& status, absl::string_view what) {
  const Result result = absl::IsUnavailable(status) ? Result::kUnknown : Result::kFail;
  return {result, absl::StrCat(what, ": ", status.message())};
}

class Prober {
 public:
  Prober(Bucket& bucket, const ProbeOptions& options) : bucket_(bucket), options_(options) {
    absl::BitGen random;
    folder_ = absl::StrFormat("probe/%016x/", absl::Uniform<uint64_t>(random));
  }

  absl::StatusOr<ProbeReport> Run() {
    const auto begun = bucket_.Put(Key("begin"), "begin");
    if (!begun.ok()) return begun.status();
    TACHO_RETURN_IF_ERROR(bucket_.Get(Key("begin")).status());
    Look("read_after_write", [this] { return ReadAfterWrite(); });
    Look("ranged_read", [this] { return RangedRead(); });
    Look("list_after_write", [this] { return ListAfterWrite(); });
    Look("create_once", [this] { return CreateOnce(); });
    Look("create_race", [this] { return CreateRace(); });
    Look("replace", [this] { return Replace(); });
    Look("replace_race", [this] { return ReplaceRace(); });
    Look("replace_stale", [this] { return ReplaceStale(); });
    Look("replace_missing", [this] { return ReplaceMissing(); });
    if (auto* http = dynamic_cast<HttpBucket*>(&bucket_)) {
      Look("damaged_body", [this, http] { return DamagedBody(http); });
    }
    for (const std::string& key : keys_) bucket_.Delete(key).IgnoreError();
    Judge();
    return std::move(report_);
  }

 private:
  // A key that is deleted at the end.
  std::string Key(absl::string_view name) {
    std::string key = absl::StrCat(folder_, name);
    if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) keys_.push_back(key);
    return key;
  }
  void Look(const char* name, const std::function<Outcome()>& check) {
    Outcome outcome = check();
    report_.findings.push_back({name, outcome.result, std::move(outcome.detail)});
  }
  // The tag as replacing wants it, which Replace() finds out.
  std::string Sent(const std::string& tag) const {
    return report_.quote_tags ? absl::StrCat("\"", tag, "\"") : tag;
  }

  std::vector<Written> Race(const std::function<Written(int writer)>& write) const {
    std::vector<Written> results(static_cast<size_t>(options_.connections));
    std::vector<std::thread> threads;
    std::atomic<int> ready = 0;
    for (int i = 0; i < options_.connections; ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < options_.connections) std::this_thread::yield();
        results[static_cast<size_t>(i)] = write(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  // Whether a write under a condition that was refused has happened all the same: its answer was
  // lost, and the request that was sent again met its own object.
  bool Wrote(const absl::Status& status, const std::string& key, absl::string_view body) {
    if (!absl::IsAlreadyExists(status) && !absl::IsFailedPrecondition(status)) return false;
    const auto object = bucket_.Get(key);
    return object.ok() && object->body == body;
  }

  // What a round of writers left: each wrote its number. Nullopt if it is as it should be.
  std::optional<Outcome> Judge(const std::string& key, const std::vector<Written>& results) {
    std::vector<std::string> winners;
    absl::Status other;
    for (size_t i = 0; i < results.size(); ++i) {
      const absl::Status& status = results[i].status();
      if (status.ok()) winners.push_back(absl::StrCat(i));
      const bool lost = absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status);
      if (!status.ok() && !lost) other = status;
    }
    if (winners.size() > 1) {
      return Fail(absl::StrCat(winners.size(), " of ", results.size(),
                               " that wrote together were told that they succeeded"));
    }
    const auto object = bucket_.Get(key);
    if (winners.empty()) {
      // The winner's answer may have been lost. If its request was sent again then, the second one
      // was refused like those of the others.
      size_t writer = 0;
      const bool done =
          object.ok() && absl::SimpleAtoi(object->body, &writer) && writer < results.size();
      if (done) return std::nullopt;
      return other.ok() ? Fail("nobody succeeded") : Failed(other, "nobody succeeded");
    }
    if (!object.ok()) return Failed(object.status(), "after the race");
    if (object->body != winners[0]) return Fail("another's bytes are there than the winner's");
    return std::nullopt;
  }

  Outcome ReadAfterWrite() {
    const std::string key = Key("read");
    for (const char* body : {"one", "two", ""}) {
      const auto tag = bucket_.Put(key, body);
      if (!tag.ok()) return Failed(tag.status(), "writing");
      const auto object = bucket_.Get(key);
      if (!object.ok()) return Failed(object.status(), "reading");
      if (object->body != body) return Fail("an older object was read than the one just written");
      if (object->tag != *tag) return Fail("reading gives another tag than writing gave");
    }
    return Pass("an object is read as it was written");
  }

  Outcome RangedRead() {
    const std::string key = Key("range");
    const auto tag = bucket_.Put(key, "0123456789");
    if (!tag.ok()) return Failed(tag.status(), "writing");
    const auto middle = bucket_.GetRange(key, 3, 4);
    if (!middle.ok()) return Failed(middle.status(), "reading bytes 3 to 6");
    const auto behind = bucket_.GetRange(key, 10, 4);
    if (!behind.ok()) return Failed(behind.status(), "reading behind the end");
    if (*middle != "3456" || !behind->empty()) return Fail("other bytes came than were asked for");
    return Pass("a part of an object is read");
  }

  Outcome ListAfterWrite() {
    for (const char* name : {"list/a", "list/b"}) {
      const auto tag = bucket_.Put(Key(name), name);
      if (!tag.ok()) return Failed(tag.status(), "writing");
    }
    const auto page = bucket_.List(folder_ + "list/", "");
    if (!page.ok()) return Failed(page.status(), "listing");
    if (page->objects.size() != 2) {
      return Fail(absl::StrCat("a listing has ", page->objects.size(), " of 2 objects"));
    }
    return Pass("a listing has what was just written");
  }

  Outcome CreateOnce() {
    const std::string key = Key("once");
    const auto first = bucket_.PutNew(key, "1");
    if (!first.ok() && !Wrote(first.status(), key, "1")) return Failed(first.status(), "creating");
    const auto second = bucket_.PutNew(key, "2");
    if (second.ok()) return Fail("an object was created over one that was there");
    if (!absl::IsAlreadyExists(second.status())) return Failed(second.status(), "creating again");
    return Pass("an object that is there is not created again");
  }

  Outcome CreateRace() {
    for (int round = 0; round < options_.rounds; ++round) {
      const std::string key = Key(absl::StrCat("race-", round));
      const auto results = Race([&](int i) { return bucket_.PutNew(key, absl::StrCat(i)); });
      if (auto wrong = Judge(key, results)) return *std::move(wrong);
    }
    return Pass(absl::StrCat("one of ", options_.connections, " succeeded, in each of ",
                             options_.rounds, " rounds"));
  }

  Outcome Replace() {
    const std::string key = Key("replace");
    auto tag = bucket_.Put(key, "1");
    if (!tag.ok()) return Failed(tag.status(), "writing");
    auto bare = bucket_.PutIf(key, *tag, "2");
    if (bare.ok() || Wrote(bare.status(), key, "2")) {
      return Pass("the right tag replaces an object");
    }
    const auto quoted = bucket_.PutIf(key, absl::StrCat("\"", *tag, "\""), "2");
    if (!quoted.ok() && !Wrote(quoted.status(), key, "2")) {
      return Failed(bare.status(), "the right tag is refused");
    }
    report_.quote_tags = true;
    return Pass("the right tag replaces an object, in quotes alone");
  }

  Outcome ReplaceRace() {
    const std::string key = Key("replace-race");
    auto tag = bucket_.Put(key, "begin");
    if (!tag.ok()) return Failed(tag.status(), "writing");
    for (int round = 0; round < options_.rounds; ++round) {
      const auto results =
          Race([&](int i) { return bucket_.PutIf(key, Sent(*tag), absl::StrCat(i)); });
      if (auto wrong = Judge(key, results)) return *std::move(wrong);
      // The next round may write the same bytes, and tags are often made of them.
      tag = bucket_.Put(key, absl::StrCat("round ", round));
      if (!tag.ok()) return Failed(tag.status(), "writing");
    }
    return Pass(absl::StrCat("one of ", options_.connections, " succeeded, in each of ",
                             options_.rounds, " rounds"));
  }

  Outcome ReplaceStale() {
    const std::string key = Key("stale");
    const auto old = bucket_.Put(key, "1");
    const auto now = bucket_.Put(key, "2");
    if (!old.ok() || !now.ok()) return Failed(old.ok() ? now.status() : old.status(), "writing");
    const auto replaced = bucket_.PutIf(key, Sent(*old), "3");
    if (replaced.ok()) return Fail("the tag of an older version replaced the object");
    if (!absl::IsFailedPrecondition(replaced.status())) {
      return Failed(replaced.status(), "replacing by an older tag");
    }
    return Pass("the tag of an older version is refused");
  }

  Outcome ReplaceMissing() {
    const std::string key = Key("missing");
    const auto tag = bucket_.Put(key, "1");
    if (!tag.ok()) return Failed(tag.status(), "writing");
    if (const absl::Status gone = bucket_.Delete(key); !gone.ok()) return Failed(gone, "deleting");
    const auto replaced = bucket_.PutIf(key, Sent(*tag), "2");
    if (replaced.ok()) return Fail("an object that was deleted was replaced");
    if (!absl::IsFailedPrecondition(replaced.status())) {
      return Failed(replaced.status(), "replacing what is not there");
    }
    return Pass("an object that is not there is not replaced");
  }

  Outcome DamagedBody(HttpBucket* http) {
    const absl::Status status = http->PutDamaged(Key("damaged"));
    if (status.ok()) return Fail("a body was stored that does not match the hash sent with it");
    const auto object = bucket_.Get(Key("damaged"));
    if (!absl::IsNotFound(object.status())) return Fail("a body that was refused is there");
    return Pass("a body that does not match its hash is refused");
  }

  bool Is(const char* name, Result result) const { return report_.Find(name)->result == result; }
  std::string Diagnosis() const;
  void Judge();

  Bucket& bucket_;
  const ProbeOptions options_;
  std::string folder_;
  std::vector<std::string> keys_;
  ProbeReport report_;
};

std::string Prober::Diagnosis() const {
  const bool creates_again = Is("create_once", Result::kFail);
  if (creates_again && Is("replace", Result::kFail)) {
    return "it creates over what is there and refuses each replacement, as a Ceph bucket with "
           "versions does: use a bucket without versions";
  }
  if (creates_again && Is("replace_stale", Result::kFail)) {
    return "the service ignores conditions: if it is Google's, write gs:// in place of s3://; else "
           "use another service";
  }
  if (Is("create_race", Result::kFail) || Is("replace_race", Result::kFail)) {
    return "the service looks first and writes later, so that several succeed: use another one, or "
           "a newer version of it";
  }
  for (const ProbeFinding& finding : report_.findings) {
    if (finding.result == Result::kFail) return absl::StrCat(finding.name, ": ", finding.detail);
  }
  for (const ProbeFinding& finding : report_.findings) {
    if (finding.result == Result::kUnknown) {
      return absl::StrCat(finding.name, " is not known: ", finding.detail, "; try again");
    }
  }
  return "";
}

void Prober::Judge() {
  report_.fit_to_share = true;
  for (const ProbeFinding& finding : report_.findings) {
    if (finding.result == Result::kFail) report_.failed = true;
    const bool condition =
        absl::StartsWith(finding.name, "create") || absl::StartsWith(finding.name, "replace");
    if (finding.result == Result::kFail) report_.fit_to_share = false;
    if (condition && finding.result != Result::kPass) report_.fit_to_share = false;
  }
  report_.fit_for_history = Is("read_after_write", Result::kPass) &&
                            Is("ranged_read", Result::kPass) && Is("replace", Result::kPass);
  if (report_.fit_to_share) {
    report_.verdict = "The bucket keeps its promises: collectors may share it.";
    if (report_.quote_tags) report_.verdict += " It wants tags in quotes.";
    return;
  }
  report_.verdict = absl::StrCat("Collectors must not share this bucket: ", Diagnosis(), ".");
  report_.verdict += report_.fit_for_history ? " It can keep the history of one collector."
                                             : " It cannot keep the history of a collector either.";
}

}  // namespace

const char* NameOf(ProbeFinding::Result result) {
  switch (result) {
    case Result::kPass:
      return "pass";
    case Result::kFail:
      return "fail";
    case Result::kUnknown:
      break;
  }
  return "unknown";
}

const ProbeFinding* ProbeReport::Find(absl::string_view name) const {
  for (const ProbeFinding& finding : findings) {
    if (finding.name == name) return &finding;
  }
  return nullptr;
}

absl::StatusOr<ProbeReport> ProbeBucket(Bucket& bucket, const ProbeOptions& options) {
  return Prober(bucket, options).Run();
}

}  // namespace tacho::storage
