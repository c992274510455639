// Readers of other tools' logs, from bytes that nobody vouches for. The first byte says which.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/strings/string_view.h"
#include "client/import/formats.h"
#include "client/import/message_builder.h"
#include "client/import/readers.h"
#include "client/import/text_source.h"

namespace {

using Reader = absl::Status (*)(tacho::importer::OpenSource, const tacho::importer::ReadOptions&,
                                tacho::importer::RecordSink*);
constexpr Reader kReaders[] = {
    tacho::importer::ReadCsv,       tacho::importer::ReadJsonLines,
    tacho::importer::ReadMlperfLog, tacho::importer::ReadTrainerState,
    tacho::importer::ReadMegatron,  tacho::importer::ReadStepLog,
    tacho::importer::ReadMonitor,   tacho::importer::ReadSmi,
};

absl::Status Check(const tacho::v1::Layout* layout, const tacho::v1::ClientMessage& message) {
  const tacho::v1::Batch& batch = message.batch();
  if (layout == nullptr) return absl::OkStatus();
  if (batch.values_size() != batch.times_unix_ns_size() * layout->series_size()) std::abort();
  if (layout->has_steps() && batch.steps_size() != batch.times_unix_ns_size()) std::abort();
  for (const int64_t time : batch.times_unix_ns()) {
    if (time < 0) std::abort();
  }
  return absl::OkStatus();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  tacho::importer::DetectFormatOfBytes(bytes);
  tacho::importer::ReadOptions options;
  options.host = "h";
  options.start = absl::UnixEpoch();
  options.skip_damaged = (data[0] & 8) != 0;
  tacho::importer::RepeatCounter repeats;
  uint64_t sequences = 0;
  tacho::importer::MessageBuilder builder(
      "job",
      [&sequences](uint64_t sequence, const tacho::v1::Layout* layout,
                   tacho::v1::ClientMessage* message) {
        if (sequence != ++sequences) std::abort();
        return Check(layout, *message);
      },
      &repeats);
  const auto open = [bytes]() -> absl::StatusOr<std::unique_ptr<tacho::importer::ByteSource>> {
    return std::make_unique<tacho::importer::TextSource>(
        std::make_unique<tacho::importer::StringSource>(bytes));
  };
  const absl::Status status = kReaders[data[0] & 7](open, options, &builder);
  if (builder.Finish().ok() && status.ok() && builder.summary().messages != sequences) std::abort();
  return 0;
}
