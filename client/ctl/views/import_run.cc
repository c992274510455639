// Runs an import in two passes: the first one counts and computes the digest that identifies the
// import, the second one sends. So the same files are the same import, and nothing is stored
// twice.
#include "client/ctl/views/import_run.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/channel.h"
#include "client/import/message_builder.h"
#include "client/import/stream_digest.h"

namespace tacho::ctl {
namespace {

using importer::MessageBuilder;
using importer::StreamDigest;

uint64_t TotalBytes(const std::vector<importer::Unit>& units) {
  uint64_t bytes = 0;
  for (const importer::Unit& unit : units) bytes += unit.bytes;
  return bytes;
}

// Samples, and events, which the collector refuses by the same rules and counts with them.
uint64_t RecordsOf(const v1::ClientMessage& message) {
  return message.has_event() ? 1 : static_cast<uint64_t>(message.batch().values_size());
}

class Importer {
 public:
  Importer(const ImportOptions& options, ProgressLine* progress, Import* import)
      : options_(options), progress_(*progress), import_(*import) {}

  absl::Status Run() {
    auto units = importer::FindUnits(options_.paths, options_.units, &import_.passed_over);
    if (!units.ok()) return units.status();
    total_bytes_ = TotalBytes(*units);
    for (importer::Unit& unit : *units) {
      ImportedUnit& imported = import_.units.emplace_back();
      imported.unit = std::move(unit);
      if (absl::Status status = Scan(&imported); !status.ok()) return status;
    }
    progress_.Clear();
    if (options_.dry_run) return absl::OkStatus();
    import_.sending = true;
    total_messages_ = import_.Total().messages;
    for (ImportedUnit& imported : import_.units) {
      if (imported.summary.messages == 0) continue;
      if (absl::Status status = Send(&imported); !status.ok()) return status;
    }
    progress_.Clear();
    return absl::OkStatus();
  }

 private:
  absl::Status Scan(ImportedUnit* imported) {
    StreamDigest digest(options_.job);
    MessageBuilder builder(
        options_.job,
        [&digest](uint64_t, const v1::Layout* layout, v1::ClientMessage* message) {
          digest.Add(layout, *message);
          return absl::OkStatus();
        },
        &repeats_);
    absl::Status status = importer::ReadUnit(
        imported->unit,
        [this](uint64_t bytes) {
          read_bytes_ += bytes;
          progress_.Show("reading", read_bytes_, total_bytes_);
        },
        &builder);
    if (status.ok()) status = builder.Finish();
    imported->summary = builder.summary();
    const std::string result = digest.Finish();
    imported->agent_id =
        options_.agent_id.empty() ? importer::AgentIdOf(result) : options_.agent_id;
    imported->generation = importer::GenerationOf(result);
    digests_.push_back(result);
    return status;
  }

  absl::Status Send(ImportedUnit* imported) {
    importer::UploadOptions upload_options;
    upload_options.address = options_.address;
    upload_options.job = options_.job;
    upload_options.security = options_.security;
    upload_options.security_names = kSecurityFlags;
    upload_options.agent_id = imported->agent_id;
    upload_options.generation = imported->generation;
    upload_options.version = absl::StrCat("tachoctl ", TACHO_VERSION);
    upload_options.imports = true;
    upload_options.patience = options_.patience;
    upload_options.say = [this](absl::string_view line) { progress_.Say(line); };
    StreamDigest digest(options_.job);
    // Its layouts are used until the upload is over.
    std::unique_ptr<MessageBuilder> builder;
    importer::Upload upload(std::move(upload_options));
    absl::Status status = upload.Connect();
    import_.reached = upload.reached();
    if (!status.ok()) return status;
    uint64_t sent = 0;
    builder = std::make_unique<MessageBuilder>(
        options_.job,
        [&](uint64_t sequence, const v1::Layout* layout, v1::ClientMessage* message) {
          digest.Add(layout, *message);
          progress_.Show("sending", ++sent_messages_, total_messages_);
          if (upload.WasDurable(sequence)) {
            ++imported->already_messages;
            imported->already += RecordsOf(*message);
            return absl::OkStatus();
          }
          sent += RecordsOf(*message);
          return upload.Send(sequence, layout, std::move(*message));
        },
        nullptr);
    status = importer::ReadUnit(
        imported->unit, [](uint64_t) {}, builder.get());
    if (status.ok()) status = builder->Finish();
    if (status.ok()) status = upload.Finish();
    imported->refusals = upload.refusals();
    imported->connections = upload.connections();
    const uint64_t refused = imported->refusals.refused_samples();
    imported->stored = sent - std::min(sent, refused);
    if (!status.ok()) return status;
    const size_t index = static_cast<size_t>(imported - import_.units.data());
    if (digest.Finish() == digests_[index]) return absl::OkStatus();
    return absl::AbortedError(
        absl::StrCat(imported->unit.name,
                     " changed while it was imported: what is stored may be a "
                     "mixture; import it again when nobody writes to it"));
  }

  const ImportOptions& options_;
  ProgressLine& progress_;
  Import& import_;
  importer::RepeatCounter repeats_;
  std::vector<std::string> digests_;  // One a unit.
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t total_messages_ = 0;
  uint64_t sent_messages_ = 0;
};

}  // namespace

importer::Summary Import::Total() const {
  importer::Summary total;
  std::map<std::string, size_t> files_with;  // By note.
  for (const ImportedUnit& each : units) {
    for (const std::string& note : each.summary.notes) ++files_with[note];
  }
  for (const ImportedUnit& each : units) {
    importer::Summary summary = each.summary;
    // A line's number says nothing without its file.
    const std::string& file = each.unit.paths.front();
    const auto name_file = [&](std::string* where) {
      if (units.size() < 2 || where->empty() || absl::StrContains(*where, file)) return;
      *where = absl::StrCat(file, ", ", *where);
    };
    for (importer::Summary::Skipped& skipped : summary.skipped) name_file(&skipped.where);
    name_file(&summary.first_replaced);
    for (std::string& note : summary.notes) {
      if (files_with[note] == 1) name_file(&note);
    }
    total.Add(summary);
  }
  return total;
}

ImportedUnit Import::Sum() const {
  ImportedUnit sum;
  for (const ImportedUnit& each : units) {
    sum.stored += each.stored;
    sum.already += each.already;
    sum.already_messages += each.already_messages;
    sum.refusals.Add(each.refusals);
    sum.connections = std::max(sum.connections, each.connections);
  }
  sum.summary = Total();
  return sum;
}

absl::Status RunImport(const ImportOptions& options, ProgressLine* progress, Import* import) {
  return Importer(options, progress, import).Run();
}

}  // namespace tacho::ctl
