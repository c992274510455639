// Each chunk is appended to the targets, these are synced, and only then the old spool is trimmed:
// the disk needs room for one chunk more, and no crash of the machine takes a message from both.
#include "agent/spool/spool_move.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/spool/spool_notes.h"
#include "proto/base/status_macros.h"
#include "storage/journal/spool_journal.h"

namespace tacho::agent {
namespace {

// Moved between two syncs.
constexpr uint64_t kChunkBytes = 4u << 20;

template <typename T>
std::span<const T> SpanOf(const google::protobuf::RepeatedField<T>& column) {
  return {column.data(), static_cast<size_t>(column.size())};
}

class Mover {
 public:
  Mover(Spool* from, const MoveTargets& targets)
      : from_(from),
        targets_(targets),
        key_(absl::StrCat(kMovedPrefix, absl::Hex(from->generation(), absl::kZeroPad16))) {}

  absl::Status Run() {
    for (;;) {
      TACHO_ASSIGN_OR_RETURN(auto entries, from_->Read(from_->begin(), kChunkBytes));
      if (entries.empty()) break;
      for (const Spool::Entry& entry : entries) TACHO_RETURN_IF_ERROR(Move(entry));
      TACHO_RETURN_IF_ERROR(SyncTargets());
      TACHO_RETURN_IF_ERROR(from_->Trim(entries.back().sequence + 1));
    }
    TACHO_RETURN_IF_ERROR(MoveCheckpoints());
    return SyncTargets();
  }

  uint64_t messages() const { return messages_; }

 private:
  absl::Status Move(const Spool::Entry& entry) {
    if (IsCopy(entry)) return absl::OkStatus();  // The rows themselves lie in another spool.
    const bool is_gap = entry.message.kind() == v1::ClientMessage::kGap;
    Spool* target = targets_.home;
    if (!is_gap) {
      TACHO_ASSIGN_OR_RETURN(target, targets_.of_source(from_->SourceOf(entry.message)));
    }
    const auto [moved, is_new] = moved_.try_emplace(target, 0);
    if (is_new && !absl::SimpleAtoi(target->ReadCheckpoint(key_), &moved->second)) {
      moved->second = 0;
    }
    if (entry.sequence <= moved->second) return absl::OkStatus();
    absl::Status status = Append(entry, target);
    if (absl::IsInvalidArgument(status)) {
      status = target->AppendLoss(
          entry.message.rows(),
          absl::StrCat("it could not be moved to another spool: ", status.message()), At(entry));
    }
    if (status.ok()) ++messages_;
    return status;
  }

  bool IsCopy(const Spool::Entry& entry) const {
    if (entry.message.kind() != v1::ClientMessage::kBatch) return false;
    const auto layout = from_->FindLayout(entry.message.layout());
    return layout.ok() && layout->copy();
  }

  // INVALID_ARGUMENT: the message makes no sense in any spool.
  absl::Status Append(const Spool::Entry& entry, Spool* target) {
    const v1::ClientMessage message = entry.message.Parsed();
    switch (message.message_case()) {
      case v1::ClientMessage::kBatch: {
        const auto layout = from_->FindLayout(entry.message.layout());
        if (!layout.ok()) return absl::InvalidArgumentError(layout.status().message());
        TACHO_ASSIGN_OR_RETURN(const uint32_t handle, target->DefineLayout(*layout));
        const v1::Batch& batch = message.batch();
        return target->AppendRows(handle, SpanOf(batch.times_unix_ns()), SpanOf(batch.steps()),
                                  SpanOf(batch.values()), At(entry));
      }
      case v1::ClientMessage::kEvent:
        return target->AppendEvent(message.event(), At(entry));
      case v1::ClientMessage::kAttributes:
        return target->AppendAttributes(message.attributes(), At(entry));
      case v1::ClientMessage::kGap:
        return target->AppendLoss(message.gap().rows(), message.gap().reason(), At(entry));
      default:
        return absl::InvalidArgumentError("its kind is unknown");
    }
  }

  RowSink::Checkpoint At(const Spool::Entry& entry) const {
    return {.key = key_, .value = absl::StrCat(entry.sequence)};
  }

  absl::Status SyncTargets() {
    for (const auto& [target, moved] : moved_) TACHO_RETURN_IF_ERROR(target->Sync());
    return targets_.home->Sync();
  }

  absl::Status MoveCheckpoints() {
    for (const RowSink::Checkpoint& checkpoint : from_->Checkpoints()) {
      const bool of_spool = absl::StartsWith(checkpoint.key, kMovedPrefix) ||
                            absl::StartsWith(checkpoint.key, kAcknowledgedPrefix);
      // One that is there was moved before a crash: no source has run since.
      if (of_spool || !targets_.read_checkpoint(checkpoint.key).empty()) continue;
      TACHO_RETURN_IF_ERROR(targets_.home->WriteCheckpoint(checkpoint));
    }
    return absl::OkStatus();
  }

  Spool* const from_;
  const MoveTargets& targets_;
  const std::string key_;
  std::map<Spool*, uint64_t> moved_;  // How far each target has come.
  uint64_t messages_ = 0;
};

}  // namespace

absl::Status MoveSpool(const FoundSpool& from, const SpoolOptions& options,
                       const MoveTargets& targets) {
  SpoolOptions old = options;
  old.path = from.path;
  TACHO_ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, Spool::Open(std::move(old)));
  Mover mover(spool.get(), targets);
  if (absl::Status status = mover.Run(); !status.ok()) {
    return {status.code(),
            absl::StrCat(
                "cannot move what waits in ", from.path,
                " into the spools of the collectors that are configured now: ", status.message(),
                "; nothing is lost. Remove the cause and start the agent again")};
  }
  spool.reset();
  options.log.Info("moved what waited in a spool of another list of collectors",
                   {{"from", from.path}, {"messages", mover.messages()}});
  TACHO_RETURN_IF_ERROR(storage::SpoolJournal::Remove(from.path));
  if (from.shards == 0) return absl::OkStatus();
  std::error_code error;  // Ignored: the directory has no spool in it any more.
  std::filesystem::remove_all(from.path, error);
  return absl::OkStatus();
}

void ForgetMoves(Spool* spool) {
  for (const RowSink::Checkpoint& checkpoint : spool->Checkpoints()) {
    if (!absl::StartsWith(checkpoint.key, kMovedPrefix)) continue;
    spool->WriteCheckpoint({.key = checkpoint.key}).IgnoreError();  // Again at the next start.
  }
}

}  // namespace tacho::agent
