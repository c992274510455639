// Acknowledgements that wait for the bucket. A store whose directory is kept is sealed and copied
// before it takes anything: whatever its log had that the bucket had not is then there, and the log
// of this epoch begins behind it. A store that was just made of the bucket needs none of that.
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/engine.h"

namespace tacho::storage {
namespace {

// How long closing waits for the bucket. What is not there then comes again from the agents.
constexpr absl::Duration kLastShipping = absl::Seconds(10);

}  // namespace

absl::Status Engine::StartShared() {
  uint64_t after = opened_at;
  if (!opening->restored) {
    TACHO_RETURN_IF_ERROR(Seal());
    after = database->db->GetLatestSequenceNumber();
    TACHO_RETURN_IF_ERROR(history->CommitState(/*base=*/true));
  }
  history->StartShipping(
      after, [this](uint64_t sequence) { committer.NoteShipped(sequence); },
      [this](const absl::Status& why) {
        Log(absl::StrCat("nothing more is acknowledged: ", why.ToString()));
        // First, so that those whose messages fail next know why.
        if (options.shared.on_ended != nullptr) options.shared.on_ended(why);
        committer.Fence(absl::UnavailableError(why.message()));
      });
  return absl::OkStatus();
}

void Engine::StopShared() {
  absl::Status status =
      history->AwaitShipped(options.background ? kLastShipping : absl::Milliseconds(200));
  if (status.ok()) status = history->CommitState(/*base=*/false);
  if (!status.ok()) Log(absl::StrCat("the last copy is not in the bucket: ", status.ToString()));
  history->StopShipping();
  committer.Fence(absl::UnavailableError("the store is closing"));
}

}  // namespace tacho::storage
