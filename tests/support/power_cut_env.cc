#include "tests/support/power_cut_env.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tacho::testing {
namespace {

using rocksdb::Status;

Status Dead() { return Status::IOError("no power"); }
Status Missing(const std::string& name) { return Status::PathNotFound(name); }

// "/a//b/" -> "/a/b".
std::string Clean(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c != '/' || out.empty() || out.back() != '/') out.push_back(c);
  }
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

class Lock : public rocksdb::FileLock {};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string LossOf(bool entries_reached_disk, size_t tail) {
  constexpr const char* kTails[] = {"nothing", "a part", "all", "zeros"};
  return std::string(entries_reached_disk ? "names are there" : "names are lost") + ", of data " +
         kTails[tail];
}

}  // namespace

class PowerCutEnv::Reader : public rocksdb::SequentialFile {
 public:
  Reader(PowerCutEnv* env, InodePtr inode) : env_(env), inode_(std::move(inode)) {}
  Status Read(size_t size, rocksdb::Slice* result, char* scratch) override {
    absl::MutexLock lock(&env_->mutex_);
    const size_t got = std::min(size, inode_->data.size() - std::min(at_, inode_->data.size()));
    if (got > 0) std::memcpy(scratch, inode_->data.data() + at_, got);
    at_ += got;
    *result = {scratch, got};
    return Status::OK();
  }
  Status Skip(uint64_t size) override {
    at_ += size;
    return Status::OK();
  }

 private:
  PowerCutEnv* const env_;
  const InodePtr inode_;
  size_t at_ = 0;
};

class PowerCutEnv::RandomReader : public rocksdb::RandomAccessFile {
 public:
  RandomReader(PowerCutEnv* env, InodePtr inode) : env_(env), inode_(std::move(inode)) {}
  Status Read(uint64_t offset, size_t size, rocksdb::Slice* result, char* scratch) const override {
    absl::MutexLock lock(&env_->mutex_);
    const size_t at = std::min<size_t>(offset, inode_->data.size());
    const size_t got = std::min(size, inode_->data.size() - at);
    if (got > 0) std::memcpy(scratch, inode_->data.data() + at, got);
    *result = {scratch, got};
    return Status::OK();
  }

 private:
  PowerCutEnv* const env_;
  const InodePtr inode_;
};

class PowerCutEnv::Writer : public rocksdb::WritableFile {
 public:
  Writer(PowerCutEnv* env, InodePtr inode) : env_(env), inode_(std::move(inode)) {}
  using rocksdb::WritableFile::Append;
  Status Append(const rocksdb::Slice& data) override {
    absl::MutexLock lock(&env_->mutex_);
    // A write during which the power goes may be there in part.
    if (!env_->dead_) inode_->data.append(data.data(), data.size());
    return env_->Live() ? Status::OK() : Dead();
  }
  Status Truncate(uint64_t size) override {
    absl::MutexLock lock(&env_->mutex_);
    if (!env_->Live()) return Dead();
    inode_->data.resize(size);
    inode_->synced = std::min<size_t>(inode_->synced, size);
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override {
    const auto apply = [this] { inode_->synced = inode_->data.size(); };
    return env_->SyncWith(apply) ? Status::OK() : Dead();
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize() override {
    absl::MutexLock lock(&env_->mutex_);
    return inode_->data.size();
  }

 private:
  PowerCutEnv* const env_;
  const InodePtr inode_;
};

class PowerCutEnv::Overwriter : public rocksdb::RandomRWFile {
 public:
  Overwriter(PowerCutEnv* env, InodePtr inode) : env_(env), inode_(std::move(inode)) {}
  // Within what is there, as nobody needs more.
  Status Write(uint64_t offset, const rocksdb::Slice& data) override {
    absl::MutexLock lock(&env_->mutex_);
    if (env_->dead_) return Dead();
    if (offset + data.size() > inode_->data.size()) return Status::NotSupported("growing");
    if (!inode_->before) inode_->before = inode_->data;
    inode_->data.replace(offset, data.size(), data.data(), data.size());
    return env_->Live() ? Status::OK() : Dead();
  }
  Status Read(uint64_t /*offset*/, size_t /*size*/, rocksdb::Slice* /*result*/,
              char* /*scratch*/) const override {
    return Status::NotSupported("reading while writing");
  }
  Status Flush() override { return Status::OK(); }
  Status Sync() override {
    const auto apply = [this] { inode_->before.reset(); };
    return env_->SyncWith(apply) ? Status::OK() : Dead();
  }
  Status Close() override { return Status::OK(); }

 private:
  PowerCutEnv* const env_;
  const InodePtr inode_;
};

class PowerCutEnv::Folder : public rocksdb::Directory {
 public:
  Folder(PowerCutEnv* env, std::string path) : env_(env), path_(std::move(path)) {}
  Status Fsync() override {
    const auto apply = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      std::erase_if(env_->durable_,
                    [this](const auto& entry) { return DirectoryOf(entry.first) == path_; });
      for (const auto& [path, inode] : env_->live_) {
        if (DirectoryOf(path) == path_) env_->durable_[path] = inode;
      }
    };
    return env_->SyncWith(apply) ? Status::OK() : Dead();
  }

 private:
  PowerCutEnv* const env_;
  const std::string path_;
};

PowerCutEnv::PowerCutEnv(uint64_t seed) : EnvWrapper(rocksdb::Env::Default()), random_(seed) {}
PowerCutEnv::~PowerCutEnv() = default;

void PowerCutEnv::CutAtSync(uint64_t n, bool after) {
  absl::MutexLock lock(&mutex_);
  cut_at_sync_ = syncs_ + n;
  cut_after_ = after;
}

void PowerCutEnv::CutAtOperation(uint64_t n) {
  absl::MutexLock lock(&mutex_);
  cut_at_operation_ = operations_ + n;
}

void PowerCutEnv::CutNow() {
  absl::MutexLock lock(&mutex_);
  if (!dead_) Cut();
}

bool PowerCutEnv::dead() const {
  absl::MutexLock lock(&mutex_);
  return dead_;
}

bool PowerCutEnv::lost_power() const {
  absl::MutexLock lock(&mutex_);
  return dead_ && !killed_;
}

uint64_t PowerCutEnv::bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (const auto& [path, inode] : live_) sum += inode->data.size();
  return sum;
}

uint64_t PowerCutEnv::syncs() const {
  absl::MutexLock lock(&mutex_);
  return syncs_;
}

std::string PowerCutEnv::loss() const {
  absl::MutexLock lock(&mutex_);
  return loss_;
}

bool PowerCutEnv::Live() {
  if (dead_) return false;
  if (++operations_ == cut_at_operation_) Cut();
  if (operations_ == kill_at_operation_) EndProcess();
  return !dead_;
}

template <typename Apply>
bool PowerCutEnv::SyncWith(const Apply& apply) {
  Look();
  const bool done = [&] {
    absl::MutexLock lock(&mutex_);
    return LiveSync(apply);
  }();
  Look();
  return done;
}

template <typename Apply>
bool PowerCutEnv::LiveSync(const Apply& apply) {
  if (!Live()) return false;
  const bool cut = ++syncs_ == cut_at_sync_;
  if (cut && !cut_after_) Cut();
  if (dead_) return false;
  apply();
  if (cut) Cut();
  return !dead_;
}

void PowerCutEnv::Cut() {
  dead_ = true;
  const bool entries_reached_disk = random_() % 2 == 0;
  const auto tail = static_cast<Tail>(random_() % 4);
  loss_ = LossOf(entries_reached_disk, static_cast<size_t>(tail));
  left_ = Left(entries_reached_disk, tail);
}

PowerCutEnv::Entries PowerCutEnv::Left(bool entries_reached_disk, Tail tail) {
  Entries all;
  for (const auto& [path, inode] : entries_reached_disk ? live_ : durable_) {
    const size_t unsynced = inode->data.size() - inode->synced;
    auto left = std::make_shared<Inode>(*inode);
    if (tail == Tail::kNothing) {
      left->data.resize(inode->synced);
    } else if (tail == Tail::kPart && unsynced > 0) {
      left->data.resize(inode->synced + random_() % unsynced);
    } else if (tail == Tail::kZeros) {
      left->data.resize(inode->synced);
      left->data.resize(inode->data.size(), '\0');
    }
    if (inode->before && tail != Tail::kAll) {
      // A part is cut anywhere, so that a record written over may be torn.
      const size_t written = tail == Tail::kNothing ? 0 : random_() % (inode->before->size() + 1);
      left->data = inode->data.substr(0, written) + inode->before->substr(written);
    }
    left->before.reset();
    left->synced = left->data.size();
    all[path] = left;
  }
  return all;
}

std::string PowerCutEnv::Rot() {
  absl::MutexLock lock(&mutex_);
  // Paths ascend: of the logs of a directory the newest comes last.
  std::string newest_log;
  std::vector<std::pair<std::string, size_t>> whole;  // With how many bytes may change.
  for (const auto& [path, inode] : live_) {
    if (EndsWith(path, ".log")) newest_log = path;
  }
  for (const auto& [path, inode] : live_) {
    const bool known = EndsWith(path, ".sst") || EndsWith(path, ".log") ||
                       path.find("/MANIFEST-") != std::string::npos;
    if (!known || inode->synced < inode->data.size() || inode->before) continue;
    const size_t bytes = path == newest_log ? inode->data.size() / 2 : inode->data.size();
    if (bytes > 0) whole.emplace_back(path, bytes);
  }
  if (whole.empty()) return "";
  const auto& [path, bytes] = whole[random_() % whole.size()];
  live_[path]->data[random_() % bytes] ^= static_cast<char>(1 << random_() % 8);
  return path;
}

std::map<std::string, PowerCutEnv::Files> PowerCutEnv::PossibleCuts() {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, Files> cuts;
  for (const bool entries_reached_disk : {true, false}) {
    for (const Tail tail : {Tail::kNothing, Tail::kPart, Tail::kAll, Tail::kZeros}) {
      Files files;
      for (const auto& [path, inode] : Left(entries_reached_disk, tail)) files[path] = inode->data;
      const bool is_new = std::none_of(cuts.begin(), cuts.end(),
                                       [&](const auto& cut) { return cut.second == files; });
      if (!is_new) continue;
      cuts.emplace(LossOf(entries_reached_disk, static_cast<size_t>(tail)), std::move(files));
    }
  }
  return cuts;
}

PowerCutEnv::Files PowerCutEnv::files() const {
  absl::MutexLock lock(&mutex_);
  Files files;
  for (const auto& [path, inode] : live_) files[path] = inode->data;
  return files;
}

void PowerCutEnv::SetFiles(const Files& files) {
  absl::MutexLock lock(&mutex_);
  live_.clear();
  for (const auto& [path, data] : files) {
    live_[path] = std::make_shared<Inode>(Inode{.data = data, .synced = data.size()});
  }
  durable_ = live_;
  dead_ = false;
}

void PowerCutEnv::Kill() {
  absl::MutexLock lock(&mutex_);
  EndProcess();
}

void PowerCutEnv::KillAtOperation(uint64_t n) {
  absl::MutexLock lock(&mutex_);
  kill_at_operation_ = operations_ + n;
}

void PowerCutEnv::EndProcess() {
  if (dead_) return;
  dead_ = killed_ = true;
  loss_ = "nothing: the machine went on";
}

void PowerCutEnv::Start() {
  absl::MutexLock lock(&mutex_);
  if (!dead_) Cut();
  if (!killed_) durable_ = live_ = left_;
  dead_ = killed_ = false;
  syncs_ = operations_ = cut_at_sync_ = cut_at_operation_ = kill_at_operation_ = 0;
}

PowerCutEnv::InodePtr PowerCutEnv::Find(const std::string& name) const {
  const auto found = live_.find(Clean(name));
  return found == live_.end() ? nullptr : found->second;
}

Status PowerCutEnv::NewSequentialFile(const std::string& name,
                                      std::unique_ptr<rocksdb::SequentialFile>* file,
                                      const rocksdb::EnvOptions& /*options*/) {
  absl::MutexLock lock(&mutex_);
  const InodePtr inode = Find(name);
  if (inode == nullptr) return Missing(name);
  *file = std::make_unique<Reader>(this, inode);
  return Status::OK();
}

Status PowerCutEnv::NewRandomAccessFile(const std::string& name,
                                        std::unique_ptr<rocksdb::RandomAccessFile>* file,
                                        const rocksdb::EnvOptions& /*options*/) {
  absl::MutexLock lock(&mutex_);
  const InodePtr inode = Find(name);
  if (inode == nullptr) return Missing(name);
  *file = std::make_unique<RandomReader>(this, inode);
  return Status::OK();
}

Status PowerCutEnv::NewWritableFile(const std::string& name,
                                    std::unique_ptr<rocksdb::WritableFile>* file,
                                    const rocksdb::EnvOptions& /*options*/) {
  absl::MutexLock lock(&mutex_);
  if (!Live()) return Dead();
  const auto inode = std::make_shared<Inode>();
  live_[Clean(name)] = inode;
  *file = std::make_unique<Writer>(this, inode);
  return Status::OK();
}

Status PowerCutEnv::NewRandomRWFile(const std::string& name,
                                    std::unique_ptr<rocksdb::RandomRWFile>* file,
                                    const rocksdb::EnvOptions& /*options*/) {
  absl::MutexLock lock(&mutex_);
  const InodePtr inode = Find(name);
  if (inode == nullptr) return Missing(name);
  *file = std::make_unique<Overwriter>(this, inode);
  return Status::OK();
}

Status PowerCutEnv::ReopenWritableFile(const std::string& name,
                                       std::unique_ptr<rocksdb::WritableFile>* file,
                                       const rocksdb::EnvOptions& /*options*/) {
  absl::MutexLock lock(&mutex_);
  if (!Live()) return Dead();
  InodePtr& inode = live_[Clean(name)];
  if (inode == nullptr) inode = std::make_shared<Inode>();
  *file = std::make_unique<Writer>(this, inode);
  return Status::OK();
}

Status PowerCutEnv::NewDirectory(const std::string& name,
                                 std::unique_ptr<rocksdb::Directory>* directory) {
  *directory = std::make_unique<Folder>(this, Clean(name));
  return Status::OK();
}

Status PowerCutEnv::FileExists(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (Find(name) != nullptr) return Status::OK();
  const std::string prefix = Clean(name) + "/";
  const auto below = live_.lower_bound(prefix);
  const bool is_directory =
      below != live_.end() && below->first.compare(0, prefix.size(), prefix) == 0;
  return is_directory ? Status::OK() : Status::NotFound(name);
}

Status PowerCutEnv::GetChildren(const std::string& directory, std::vector<std::string>* names) {
  absl::MutexLock lock(&mutex_);
  names->clear();
  const std::string path = Clean(directory);
  for (const auto& [name, inode] : live_) {
    if (DirectoryOf(name) == path) names->push_back(name.substr(path.size() + 1));
  }
  return Status::OK();
}

Status PowerCutEnv::GetChildrenFileAttributes(const std::string& directory,
                                              std::vector<FileAttributes>* files) {
  absl::MutexLock lock(&mutex_);
  files->clear();
  const std::string path = Clean(directory);
  for (const auto& [name, inode] : live_) {
    if (DirectoryOf(name) != path) continue;
    files->push_back({name.substr(path.size() + 1), inode->data.size()});
  }
  return Status::OK();
}

Status PowerCutEnv::DeleteFile(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (!Live()) return Dead();
  return live_.erase(Clean(name)) > 0 ? Status::OK() : Missing(name);
}

// There are no directories but as parts of names.
Status PowerCutEnv::CreateDir(const std::string& /*name*/) { return Status::OK(); }
Status PowerCutEnv::CreateDirIfMissing(const std::string& /*name*/) { return Status::OK(); }
Status PowerCutEnv::DeleteDir(const std::string& /*name*/) { return Status::OK(); }

Status PowerCutEnv::GetFileSize(const std::string& name, uint64_t* size) {
  absl::MutexLock lock(&mutex_);
  const InodePtr inode = Find(name);
  if (inode == nullptr) return Missing(name);
  *size = inode->data.size();
  return Status::OK();
}

Status PowerCutEnv::GetFileModificationTime(const std::string& /*name*/, uint64_t* time) {
  *time = 0;
  return Status::OK();
}

Status PowerCutEnv::RenameFile(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mutex_);
  if (!Live()) return Dead();
  const InodePtr inode = Find(from);
  if (inode == nullptr) return Missing(from);
  live_.erase(Clean(from));
  live_[Clean(to)] = inode;
  return Status::OK();
}

Status PowerCutEnv::LinkFile(const std::string& from, const std::string& /*to*/) {
  return Status::NotSupported(from);
}

Status PowerCutEnv::LockFile(const std::string& /*name*/, rocksdb::FileLock** lock) {
  *lock = new Lock;
  return Status::OK();
}

Status PowerCutEnv::UnlockFile(rocksdb::FileLock* lock) {
  delete lock;
  return Status::OK();
}

Status PowerCutEnv::GetAbsolutePath(const std::string& name, std::string* path) {
  *path = name;
  return Status::OK();
}

}  // namespace tacho::testing
