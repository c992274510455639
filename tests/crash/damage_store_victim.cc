#include <utility>

#include "proto/base/check.h"
#include "storage/store.h"
#include "tests/crash/contents.h"
#include "tests/crash/damage_victims.h"
#include "tests/crash/sender.h"

namespace tacho::crash {
namespace {

using tacho::testing::PowerCutEnv;

constexpr char kPath[] = "/store";
constexpr uint64_t kSeed = 5;

class StoreVictim : public DamageVictim {
 public:
  DamageImage Make() override {
    PowerCutEnv env(kSeed);
    Live(&env, 1, 40, true);
    // The next life ends with open rows in the log, which become a table of the journal.
    {
      auto store = Open(&env);
      Send(store.get(), 2, 12);
      TACHO_CHECK(store->Seal().ok());
      Send(store.get(), 3, 6);
      env.CutNow();
    }
    env.Start();
    auto store = Open(&env);
    DamageImage image;
    image.earlier.push_back(Read(*store));
    for (uint64_t life = 4; life < 12; ++life) {
      Send(store.get(), life, 1);
      if (life == 6) TACHO_CHECK(store->Seal().ok());
      image.earlier.push_back(Read(*store));
    }
    image.expected = image.earlier.back();
    image.earlier.pop_back();
    image.files = env.files();
    FillKinds(kPath, &image);
    return image;
  }

  void Load(const DamageImage& image) override {
    expected_ = *DecodeContents(image.expected);
    earlier_.clear();
    for (const std::string& one : image.earlier) earlier_.push_back(*DecodeContents(one));
  }

  Judgement Judge(const PowerCutEnv::Files& files) override {
    PowerCutEnv env(kSeed);
    env.SetFiles(files);
    return JudgeStore(Options(&env), expected_, earlier_);
  }

 private:
  static storage::StoreOptions Options(rocksdb::Env* env) {
    storage::StoreOptions options;
    options.path = kPath;
    options.env = env;
    options.retention = absl::ZeroDuration();
    options.background = false;
    options.commit_spacing = absl::ZeroDuration();
    options.block_cache_bytes = options.column_cache_bytes = 1 << 20;
    return options;
  }
  static std::unique_ptr<storage::Store> Open(rocksdb::Env* env) {
    auto store = storage::Store::Open(Options(env));
    TACHO_CHECK(store.ok());
    return *std::move(store);
  }
  static std::string Read(const storage::Store& store) {
    const auto contents = ReadContents(store);
    TACHO_CHECK(contents.ok());
    return EncodeContents(*contents);
  }
  static void Send(storage::Store* store, uint64_t life, int messages) {
    Sender sender(store, {.seed = kSeed,
                          .life = life,
                          .window = 1,
                          .tell = [](Report::Kind, uint32_t, uint64_t, bool) {},
                          .fail = [](const absl::Status&) { TACHO_CHECK(false); }});
    for (int i = 0; i < messages; ++i) sender.SendOne();
    sender.AwaitAnswers();
  }
  static void Live(rocksdb::Env* env, uint64_t life, int messages, bool seal) {
    const auto store = Open(env);
    Send(store.get(), life, messages);
    if (seal) TACHO_CHECK(store->Seal().ok());
    TACHO_CHECK(store->Close().ok());
  }

  Contents expected_;
  std::vector<Contents> earlier_;
};

}  // namespace

std::unique_ptr<DamageVictim> MakeVictim() { return std::make_unique<StoreVictim>(); }

}  // namespace tacho::crash
