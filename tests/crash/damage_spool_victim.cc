// A spool keeps its promise to tell of what it lost in two ways: it is refused and moved aside as a
// whole, or a Gap stands where an entry was.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/spool/spool.h"
#include "proto/base/check.h"
#include "tests/agent/recording_sink.h"
#include "tests/crash/damage_victims.h"
#include "tests/crash/spool_contents.h"

namespace tacho::crash {
namespace {

using agent::Spool;
using tacho::testing::PowerCutEnv;

// Nothing of this name is on the real disk, where a damaged spool would be moved aside.
constexpr char kPath[] = "/there-is-no-such-directory/spool";
constexpr uint64_t kSeed = 5;

class SpoolVictim : public DamageVictim {
 public:
  DamageImage Make() override {
    PowerCutEnv env(kSeed);
    for (int life = 0; life < 2; ++life) {  // Opening turns a log into tables.
      const auto spool = Open(&env);
      for (int i = 0; i < 8; ++i) Append(spool.get(), life * 8 + i);
      TACHO_CHECK(spool->Sync().ok());
    }
    const auto spool = Open(&env);
    DamageImage image;
    for (int i = 16; i < 24; ++i) {
      image.earlier.push_back(EncodeSpool(*ReadSpool(spool.get())));
      Append(spool.get(), i);
      TACHO_CHECK(spool->Sync().ok());
    }
    image.expected = EncodeSpool(*ReadSpool(spool.get()));
    image.files = env.files();
    FillKinds(kPath, &image);
    return image;
  }

  void Load(const DamageImage& image) override {
    expected_ = DecodeSpool(image.expected);
    earlier_.clear();
    for (const std::string& one : image.earlier) earlier_.push_back(DecodeSpool(one));
  }

  Judgement Judge(const PowerCutEnv::Files& files) override {
    PowerCutEnv env(kSeed);
    env.SetFiles(files);
    std::vector<std::string> log;
    auto opened = Spool::Open(Options(&env, &log));
    if (!opened.ok()) return JudgeRefusal(opened.status(), log);
    auto found = ReadSpool(opened->get());
    if (!found.ok()) {
      const bool told = absl::IsDataLoss(found.status());
      return {told ? Outcome::kContained : Outcome::kWrong, found.status().ToString()};
    }
    return Compare(*found);
  }

 private:
  static agent::SpoolOptions Options(rocksdb::Env* env, std::vector<std::string>* log) {
    agent::SpoolOptions options;
    options.path = kPath;
    options.now = [] { return absl::FromUnixSeconds(1'700'000'000); };
    options.log = agent::testing::LogTo(log);
    options.env = env;
    options.reopen_interval = absl::ZeroDuration();
    return options;
  }
  static std::unique_ptr<Spool> Open(rocksdb::Env* env) {
    static std::vector<std::string> log;
    auto spool = Spool::Open(Options(env, &log));
    TACHO_CHECK(spool.ok());
    return *std::move(spool);
  }

  static void Append(Spool* spool, int number) {
    TACHO_CHECK(AppendToSpool(spool, static_cast<uint64_t>(number)).ok());
  }

  // In memory there is nothing to move aside, so a damaged spool cannot be opened again here.
  static Judgement JudgeRefusal(const absl::Status& status, const std::vector<std::string>& log) {
    for (const std::string& line : log) {
      if (absl::StrContains(line, "the spool is damaged")) return {Outcome::kRefused, line};
    }
    const bool named = absl::IsFailedPrecondition(status) || absl::IsDataLoss(status);
    return {named ? Outcome::kRefused : Outcome::kWrong, status.ToString()};
  }

  Judgement Compare(const SpoolContents& found) const {
    if (found == expected_) return {Outcome::kHarmless, ""};
    if (std::find(earlier_.begin(), earlier_.end(), found) != earlier_.end()) {
      return {Outcome::kTailLost, absl::StrCat(found.entries.size(), " entries are left of ",
                                               expected_.entries.size())};
    }
    std::string text;
    for (size_t i = 0; i < expected_.entries.size(); ++i) {
      const std::string entry = i < found.entries.size() ? found.entries[i] : "";
      if (entry == expected_.entries[i]) continue;
      v1::ClientMessage message;
      const bool told = message.ParseFromString(entry) && message.has_gap();
      if (!told) return {Outcome::kWrong, absl::StrCat("entry ", i + 1, ": missing or changed")};
      // Nothing of ours beside it: the reason alone must name what is damaged.
      text = message.gap().reason();
    }
    if (found.generation != expected_.generation || found.checkpoint != expected_.checkpoint) {
      return {Outcome::kWrong, "the generation or the checkpoint differs"};
    }
    return {Outcome::kContained, text};
  }

  SpoolContents expected_;
  std::vector<SpoolContents> earlier_;
};

}  // namespace

std::unique_ptr<DamageVictim> MakeVictim() { return std::make_unique<SpoolVictim>(); }

}  // namespace tacho::crash
