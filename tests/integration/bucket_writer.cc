// A store with acknowledgements in a bucket that dies as a machine does, for tests of what reads
// the bucket afterwards; and a hand for damage.
//
//   bucket_writer URL ENDPOINT write DIRECTORY   writes MESSAGES messages over three days, the
//   first
//                                                of which is only in the bucket then; ends without
//                                                closing anything
//   bucket_writer URL ENDPOINT list              prints the keys
//   bucket_writer URL ENDPOINT delete KEY
//   bucket_writer URL ENDPOINT flip KEY          changes one bit in the middle
//
// Message n, from 1, has ten rows of the series "loss" of the job "copied", task n % 3: row r at
// second 100 n + r of its day, with the value 1000 n + r.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "storage/bucket/bucket_options.h"
#include "storage/history/piece_cache.h"
#include "storage/store.h"

namespace tacho::storage {
namespace {

constexpr uint64_t kMessages = 30;
constexpr int kRows = 10;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << std::endl;
  std::exit(1);
}
template <typename T>
T Require(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

void Send(Store& store, uint64_t sequence, absl::Time midnight) {
  LayoutDefinition definition;
  const auto task = static_cast<uint32_t>(sequence % 3);
  definition.source = {"copied", task, 0, absl::StrCat("host-", task)};
  definition.has_steps = true;
  definition.series.push_back({{"loss", MetricType::kGauge, "1", "help"}, {}});
  const LayoutPtr layout = Require(store.RegisterLayout(definition)).layout;
  std::vector<int64_t> times;
  std::vector<int64_t> steps;
  std::vector<double> values;
  for (int row = 0; row < kRows; ++row) {
    const int64_t second = static_cast<int64_t>(sequence) * 100 + row;
    times.push_back(absl::ToUnixNanos(midnight + absl::Seconds(second)));
    steps.push_back(second);
    values.push_back(static_cast<double>(sequence) * 1000 + row);
  }
  std::promise<absl::Status> done;
  store.AppendRows({.agent_id = "agent", .generation = 1, .sequence = sequence}, layout,
                   {times, steps, values},
                   [&](const absl::Status& status) { done.set_value(status); });
  Require(done.get_future().get());
}

void Write(Bucket* bucket, const std::string& directory) {
  const auto pieces = Require(PieceCache::Open({.path = directory + "-pieces"}));
  const absl::Time today =
      absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) / 86'400 * 86'400);
  StoreOptions options;
  options.path = directory;
  options.background = false;
  options.now = [today] { return today + absl::Hours(12); };
  options.history = {.bucket = bucket, .pieces = pieces.get(), .owner = "writer"};
  options.history.local_retention = absl::Hours(24);
  options.history.close_after = absl::Hours(20);
  options.shared.on = true;
  options.shared.interval = absl::Milliseconds(5);
  const auto store = Require(Store::Open(options));
  for (uint64_t sequence = 1; sequence <= kMessages; ++sequence) {
    // Ten messages a day.
    const auto days_ago = static_cast<int64_t>(2 - (sequence - 1) / 10);
    Send(*store, sequence, today - absl::Hours(24) * days_ago);
    if (sequence % 10 == 0) Require(store->Seal());
    if (sequence != 25) continue;
    Require(store->MoveHistory());
    Require(store->CommitShared());
  }
  std::cout << store->Stats().partitions << " days on the disk" << std::endl;
  ::_exit(0);
}

void List(Bucket& bucket) {
  std::string from;
  do {
    const ObjectPage page = Require(bucket.List("", from));
    for (const ListedObject& object : page.objects) std::cout << object.key << "\n";
    from = page.next.value_or("");
  } while (!from.empty());
}

int Main(const std::vector<std::string>& words) {
  if (words.size() < 4) return 2;
  const auto bucket =
      Require(OpenBucket({.url = words[1], .endpoint = words[2], .path_style = true}));
  const std::string& command = words[3];
  if (command == "list") List(*bucket);
  if (words.size() < 5) return 0;
  if (command == "write") Write(bucket.get(), words[4]);
  if (command == "delete") Require(bucket->Delete(words[4]));
  if (command == "flip") {
    std::string body = Require(bucket->Get(words[4])).body;
    body[body.size() / 2] = static_cast<char>(body[body.size() / 2] ^ 1);
    Require(bucket->Put(words[4], body).status());
  }
  return 0;
}

}  // namespace
}  // namespace tacho::storage

int main(int argc, char** argv) { return tacho::storage::Main({argv, argv + argc}); }
