// A run of blocks knows the first key of each from the list. So it opens a block only when a key
// behind the first, or a value, is wanted.
#include "storage/history/union_iterator.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"

namespace tacho::storage {
namespace {

rocksdb::Status ToRocksDb(const absl::Status& status) {
  const std::string text(status.message());
  return absl::IsDataLoss(status) ? rocksdb::Status::Corruption(text)
                                  : rocksdb::Status::IOError(text);
}

}  // namespace

std::vector<BlockRun> MakeRuns(std::vector<Block> blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.first_key < b.first_key; });
  std::vector<BlockRun> runs;
  for (Block& block : blocks) {
    const auto fits = std::find_if(runs.begin(), runs.end(), [&](const BlockRun& run) {
      return run.back().last_key < block.first_key;
    });
    if (fits == runs.end()) {
      runs.push_back({std::move(block)});
    } else {
      fits->push_back(std::move(block));
    }
  }
  return runs;
}

class UnionIterator::Source {
 public:
  virtual ~Source() = default;
  // To the first key that is not before the target.
  virtual rocksdb::Status Seek(const rocksdb::Slice& target) = 0;
  virtual rocksdb::Status Next() = 0;
  virtual bool Valid() const = 0;
  virtual rocksdb::Slice key() const = 0;
  // Makes value() callable.
  virtual rocksdb::Status Load() { return rocksdb::Status::OK(); }
  virtual rocksdb::Slice value() const = 0;
};

class UnionIterator::LocalSource final : public Source {
 public:
  explicit LocalSource(std::unique_ptr<rocksdb::Iterator> it) : it_(std::move(it)) {}

  rocksdb::Status Seek(const rocksdb::Slice& target) override {
    it_->Seek(target);
    return it_->status();
  }
  rocksdb::Status Next() override {
    it_->Next();
    return it_->status();
  }
  bool Valid() const override { return it_->Valid(); }
  rocksdb::Slice key() const override { return it_->key(); }
  rocksdb::Slice value() const override { return it_->value(); }

 private:
  const std::unique_ptr<rocksdb::Iterator> it_;
};

class UnionIterator::RunSource final : public Source {
 public:
  RunSource(const BlockRun* run, BlockReaders* readers, ReadAmount amount)
      : run_(*run), readers_(readers), amount_(amount) {}

  rocksdb::Status Seek(const rocksdb::Slice& target) override {
    const auto block = std::lower_bound(run_.begin(), run_.end(), target,
                                        [](const Block& b, const rocksdb::Slice& wanted) {
                                          return rocksdb::Slice(b.last_key).compare(wanted) < 0;
                                        });
    Enter(static_cast<size_t>(block - run_.begin()));
    if (!Valid() || target.compare(run_[index_].first_key) <= 0) return rocksdb::Status::OK();
    if (rocksdb::Status opened = Open(); !opened.ok()) return opened;
    it_->Seek(target);
    return Checked();
  }
  rocksdb::Status Next() override {
    if (rocksdb::Status loaded = Load(); !loaded.ok()) return loaded;
    it_->Next();
    if (!it_->Valid() && it_->status().ok()) {
      Enter(index_ + 1);
      return rocksdb::Status::OK();
    }
    return it_->status();
  }
  bool Valid() const override { return index_ < run_.size() && (!inside_ || it_->Valid()); }
  rocksdb::Slice key() const override {
    return inside_ ? it_->key() : rocksdb::Slice(run_[index_].first_key);
  }
  rocksdb::Status Load() override {
    if (inside_) return rocksdb::Status::OK();
    if (rocksdb::Status opened = Open(); !opened.ok()) return opened;
    it_->Seek(run_[index_].first_key);
    return Checked();
  }
  rocksdb::Slice value() const override { return it_->value(); }

 private:
  // Stands before the first key of a block, without reading it.
  void Enter(size_t index) {
    inside_ = false;
    index_ = index;
  }
  rocksdb::Status Open() {
    inside_ = true;
    if (it_ != nullptr && of_ == index_) return rocksdb::Status::OK();
    auto opened = readers_->NewIterator(run_[index_].file, amount_);
    if (!opened.ok()) {
      inside_ = false;
      return ToRocksDb(opened.status());
    }
    it_ = *std::move(opened);
    of_ = index_;
    return rocksdb::Status::OK();
  }
  // The list says that the block has this key or a later one.
  rocksdb::Status Checked() const {
    if (it_->Valid() || !it_->status().ok()) return it_->status();
    return rocksdb::Status::Corruption("the block " + run_[index_].file.key +
                                       " ends before the last key that its list gives");
  }

  const BlockRun& run_;
  BlockReaders* const readers_;
  const ReadAmount amount_;
  size_t index_ = 0;
  bool inside_ = false;                    // The iterator is in block index_.
  std::unique_ptr<rocksdb::Iterator> it_;  // Null: none yet.
  size_t of_ = 0;                          // The block that it_ is of.
};

UnionIterator::UnionIterator(const std::vector<BlockRun>* runs, BlockReaders* readers,
                             std::unique_ptr<rocksdb::Iterator> local, ReadAmount amount) {
  if (local != nullptr) sources_.push_back(std::make_unique<LocalSource>(std::move(local)));
  for (const BlockRun& run : *runs) {
    sources_.push_back(std::make_unique<RunSource>(&run, readers, amount));
  }
}

UnionIterator::~UnionIterator() = default;

void UnionIterator::Refuse() {
  front_ = nullptr;
  status_ = rocksdb::Status::NotSupported("this iterator goes forward only");
}

void UnionIterator::Seek(const rocksdb::Slice& prefix) {
  prefix_ = prefix.ToString();
  status_ = rocksdb::Status::OK();
  for (const std::unique_ptr<Source>& source : sources_) {
    status_ = source->Seek(prefix_);
    if (!status_.ok()) break;
  }
  Settle();
}

void UnionIterator::Settle() {
  front_ = nullptr;
  if (!status_.ok()) return;
  for (const std::unique_ptr<Source>& source : sources_) {
    if (!source->Valid() || !source->key().starts_with(prefix_)) continue;
    if (front_ == nullptr || source->key().compare(front_->key()) < 0) front_ = source.get();
  }
  if (front_ == nullptr) return;
  status_ = front_->Load();
  if (!status_.ok()) front_ = nullptr;
}

void UnionIterator::Next() {
  TACHO_CHECK(front_ != nullptr);
  passed_.assign(front_->key().data(), front_->key().size());
  for (const std::unique_ptr<Source>& source : sources_) {
    if (!source->Valid() || source->key().compare(passed_) != 0) continue;
    status_ = source->Next();
    if (!status_.ok()) break;
  }
  Settle();
}

rocksdb::Slice UnionIterator::key() const { return front_->key(); }

rocksdb::Slice UnionIterator::value() const { return front_->value(); }

}  // namespace tacho::storage
