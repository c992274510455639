#include "tests/crash/power_cut_store.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/crash/contents.h"
#include "tests/crash/sender.h"

namespace tacho::crash {

using tacho::testing::PowerCutEnv;

PowerCutStore::PowerCutStore(Options options)
    : options_(options),
      env_(std::make_unique<PowerCutEnv>(options.seed)),
      model_(std::make_unique<Model>(options.seed)) {}

storage::StoreOptions PowerCutStore::StoreOptionsOn(rocksdb::Env* env) const {
  storage::StoreOptions options;
  options.path = "/store";
  options.env = env;
  options.retention = absl::ZeroDuration();
  options.seal_rows = options_.seal_rows;
  options.commit_spacing = absl::ZeroDuration();
  options.background = false;  // Sealing comes in the same places in every run, more or less.
  if (options_.upkeep) {
    options.merge_quiet = absl::ZeroDuration();
    options.journal_bytes = options.open_bytes = 16 << 10;
  }
  return options;
}

void PowerCutStore::Work(uint64_t messages) {
  for (int round = 0; round < 2 && !env_->dead(); ++round) {
    auto store = storage::Store::Open(StoreOptionsOn(env_.get()));
    if (!store.ok()) {
      if (!env_->dead()) Fail(absl::StrCat("open: ", store.status().ToString()));
      return;
    }
    Send(store->get(), messages);
    (*store)->Close().IgnoreError();
  }
}

void PowerCutStore::Send(storage::Store* store, uint64_t messages) {
  Sender sender(store, {.seed = options_.seed,
                        .life = ++lives_,
                        .window = 4,
                        .tell = [this](Report::Kind kind, uint32_t agent, uint64_t sequence,
                                       bool altered) { Take(kind, agent, sequence, altered); },
                        .fail = [this](const absl::Status& status) { Fail(status.ToString()); }});
  for (uint64_t i = 0; i < messages && !env_->dead(); ++i) {
    sender.SendOne();
    if (i % 16 == 15) store->Seal().IgnoreError();
    if (i % 32 == 31 && options_.upkeep) store->MergeFrames().IgnoreError();
  }
  sender.AwaitAnswers();
}

void PowerCutStore::OpenBriefly() {
  storage::Store::Open(StoreOptionsOn(env_.get())).status().IgnoreError();
}

void PowerCutStore::Take(Report::Kind kind, uint32_t agent, uint64_t sequence, bool altered) {
  absl::MutexLock lock(&mutex_);
  if (kind == Report::kSent) model_->Sent(agent, sequence, altered);
  if (kind == Report::kStored) model_->Stored(agent, sequence, altered);
  if (kind == Report::kRefused) model_->Refused(agent, sequence, altered);
  if (kind == Report::kUnsure) model_->Unsure(agent, sequence, altered);
}

std::string PowerCutStore::CheckOn(rocksdb::Env* env, Model* model) {
  auto store = storage::Store::Open(StoreOptionsOn(env));
  if (!store.ok()) return absl::StrCat("open: ", store.status().ToString());
  // The power may go between a commit and its mark, and tear the mark: neither is a loss.
  if (const uint64_t missing = (*store)->Stats().missing_commits; missing > 0) {
    return absl::StrCat(missing, " commits are said to be missing");
  }
  auto contents = ReadContents(**store);
  if (!contents.ok()) return absl::StrCat("read: ", contents.status().ToString());
  const std::string differences = [&] {
    absl::MutexLock lock(&mutex_);
    return model->Check(*std::move(contents));
  }();
  const absl::Status closed = (*store)->Close();
  return closed.ok() ? differences : absl::StrCat("close: ", closed.ToString());
}

std::string PowerCutStore::Check() {
  const std::string loss = env_->loss();
  env_->Start();
  const std::string differences = CheckOn(env_.get(), model_.get());
  return differences.empty() ? "" : absl::StrCat(loss, ": ", differences);
}

void PowerCutStore::KeepCuts() {
  env_->OnSync([this] { KeepMoment(); });
}

void PowerCutStore::KeepMoment() {
  absl::MutexLock lock(&mutex_);
  if (env_->dead()) return;
  moments_.push_back({.model = *model_, .cuts = env_->PossibleCuts()});
}

std::string PowerCutStore::CheckCuts(Tally* tally) {
  std::vector<Moment> moments;
  {
    absl::MutexLock lock(&mutex_);
    moments.swap(moments_);
  }
  tally->syncs += moments.size() / 2;
  for (size_t i = 0; i < moments.size(); ++i) {
    for (const auto& [loss, files] : moments[i].cuts) {
      Model model = moments[i].model;
      const uint64_t before = model.samples_checked();
      PowerCutEnv disk(options_.seed);
      disk.SetFiles(files);
      const std::string differences = CheckOn(&disk, &model);
      ++tally->cuts;
      tally->samples += model.samples_checked() - before;
      if (!differences.empty()) {
        return absl::StrCat("moment ", i, " of this life, ", loss, ": ", differences);
      }
    }
  }
  return "";
}

void PowerCutStore::Fail(const std::string& why) {
  absl::MutexLock lock(&mutex_);
  if (failure_.empty()) failure_ = why;
}

}  // namespace tacho::crash
